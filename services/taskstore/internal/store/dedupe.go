package store

import (
	"bytes"
	"context"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// fingerprintSize is that of pkg/task's Fingerprint.
const fingerprintSize = 32

// dedupe is the part of a change by which a message is accepted once.
type dedupe struct {
	on          bool
	key         engine.DedupeKey
	fingerprint []byte
}

func newDedupe(on bool, scope *taskstorev1.Scope, m *a2apb.Message, fingerprint []byte) (dedupe, error) {
	if on && len(fingerprint) != fingerprintSize {
		return dedupe{}, a2aerr.Invalid("fingerprint", fmt.Sprintf("%d bytes", fingerprintSize))
	}
	return dedupe{on: on, key: dedupeKey(scope, m.GetMessageId()), fingerprint: fingerprint}, nil
}

func dedupeKey(scope *taskstorev1.Scope, messageID string) engine.DedupeKey {
	return engine.DedupeKey{
		Tenant: scope.GetTenant(), Subject: scope.GetSubject(), Agent: scope.GetAgent(), MessageID: messageID,
	}
}

func (d dedupe) keys() []any {
	if !d.on {
		return nil
	}
	return []any{d.key}
}

// reserve asks for the key; outcome is what the message becomes, as far as that
// is known beforehand.
func (d dedupe) reserve(now time.Time, sel *engine.Selection, outcome engine.Dedupe) {
	if d.on {
		outcome.DedupeKey, outcome.Fingerprint, outcome.CreatedAt = d.key, d.fingerprint, now
		sel.Reserve = append(sel.Reserve, outcome)
	}
}

// find returns the record of an earlier acceptance, nil if there is none.
func (d dedupe) find(rows *engine.Loaded) (*engine.Dedupe, error) {
	known, ok := rows.Known[d.key]
	if !d.on || !ok {
		return nil, nil //nolint:nilnil // no record is a good answer
	}
	if err := sameContent(known, d.fingerprint); err != nil {
		return nil, err
	}
	return &known, nil
}

// forget drops the key of a message that is refused.
func (d dedupe) forget() decision {
	if !d.on {
		return decision{}
	}
	return decision{changes: engine.Changes{DropDedupe: []engine.DedupeKey{d.key}}}
}

// accepted completes the record of a follow-up.
func (d dedupe) accepted(of *draft, taskID string, version int64) {
	if d.on {
		of.changes.UpdateDedupe = append(of.changes.UpdateDedupe, engine.Dedupe{
			DedupeKey: d.key, Fingerprint: d.fingerprint, TaskID: taskID, AcceptedVersion: version,
		})
	}
}

func sameContent(known engine.Dedupe, fingerprint []byte) error {
	if !bytes.Equal(known.Fingerprint, fingerprint) {
		return a2aerr.Invalid("message.messageId", "was used with another content")
	}
	return nil
}

// outcome is what a message became: a task or a direct Message.
type outcome struct {
	task    *a2apb.Task
	version int64
	reply   *a2apb.Message
}

// madeOf reads what a record names.
func (s *Store) madeOf(ctx context.Context, scope engine.Scope, record engine.Dedupe, historyLength *int32) (outcome, error) {
	if record.DirectID != "" {
		direct, err := s.engine.ReadDirect(ctx, scope.Tenant, record.DirectID)
		if err != nil {
			return outcome{}, err
		}
		reply := &a2apb.Message{}
		return outcome{reply: reply}, decode(direct.Reply, reply)
	}
	t, version, err := s.readTask(ctx, scope, record.TaskID, s.detail(historyLength))
	return outcome{task: t, version: version}, err
}
