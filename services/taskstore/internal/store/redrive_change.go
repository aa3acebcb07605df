package store

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// metadataRedrivenFrom stands in the metadata of a task that was made from a dead
// letter, and names the dead task.
const metadataRedrivenFrom = "errand.redriven_from"

// redrive is the change that makes a new task of a dead letter. What it needs of
// the dead task was read before: a terminal task doesn't change.
type redrive struct {
	dead       *engine.Task
	by         string
	contextTTL time.Duration
	newTask    string
	metadata   *structpb.Struct
	// The same, encoded.
	encoded  []byte
	messages []redriven

	// What was decided.
	outcome  taskstorev1.RedriveOutcome
	madeTask string
}

// redriven is a user message of the dead task as it stands in the new one.
type redriven struct {
	*encodedMessage
	info    *eventv1.RequestInfo
	request []byte
	dedupe  dedupe
}

func (s *Store) newRedrive(ctx context.Context, letter engine.DeadLetter, by string) (*redrive, error) {
	scope := engine.Scope{Tenant: letter.Tenant}
	found, err := s.engine.ReadTasks(ctx, scope, []string{letter.TaskID}, engine.Detail{History: -1})
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("dead task %s: %w", letter.TaskID, engine.ErrNotFound)
	}
	c := &redrive{
		dead: found[0].Task, by: by, contextTTL: s.ContextTTL, newTask: s.NewID(),
		metadata: &structpb.Struct{Fields: map[string]*structpb.Value{
			metadataRedrivenFrom: structpb.NewStringValue(letter.TaskID),
		}},
	}
	if c.encoded, err = proto.Marshal(c.metadata); err != nil {
		return nil, fmt.Errorf("encode metadata: %w", err)
	}
	return c, c.retell(found[0].History)
}

// retell makes the user messages of the dead task those of the new one. Their ids
// are others, since the old ones stand for the dead task, but always the same.
func (c *redrive) retell(history []engine.Message) error {
	namespace, err := uuid.Parse(c.dead.ID)
	if err != nil {
		return fmt.Errorf("id of the dead task: %w", err)
	}
	for _, row := range history {
		if row.Kind != engine.MessageUser {
			continue
		}
		said, err := toUserMessage(row)
		if err != nil {
			return err
		}
		m := said.GetMessage()
		m.MessageId = uuid.NewSHA1(namespace, []byte(strconv.FormatInt(row.Version, 10))).String()
		if len(c.messages) == 0 {
			m.ReferenceTaskIds = append(m.ReferenceTaskIds, c.dead.ID)
		}
		told, err := ofTask(m, c.newTask, c.dead.ContextID)
		if err != nil {
			return err
		}
		c.messages = append(c.messages, redriven{
			encodedMessage: told, info: said.GetRequest(), request: row.Request,
			dedupe: dedupe{on: true, fingerprint: task.Fingerprint(told.message), key: engine.DedupeKey{
				Tenant: c.dead.Tenant, Subject: cmp.Or(said.GetRequest().GetSubject(), c.dead.Owner),
				Agent: c.dead.Agent, MessageID: m.GetMessageId(),
			}},
		})
	}
	return nil
}

func (c *redrive) Keys() []any {
	keys := []any{c.dead.ID, c.newTask}
	for _, m := range c.messages {
		keys = append(keys, m.dedupe.keys()...)
	}
	return keys
}

func (c *redrive) Size() int {
	size := 0
	for _, m := range c.messages {
		size += len(m.data) + len(m.request)
	}
	return size
}

// selects asks for the keys of the new task's messages too: they are accepted as
// if their owner had sent them.
func (c *redrive) selects(now time.Time, sel *engine.Selection) {
	sel.DeadLetters = append(sel.DeadLetters, c.dead.ID)
	for i, m := range c.messages {
		m.dedupe.reserve(now, sel, engine.Dedupe{TaskID: c.newTask, AcceptedVersion: int64(i + 1)})
	}
}

func (c *redrive) decide(now time.Time, rows *engine.Loaded) decision {
	letter, found := rows.DeadLetters[c.dead.ID]
	switch c.madeTask = letter.Redrive.TaskID; {
	case !found:
		c.outcome = taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND
		return c.forget(rows)
	case c.madeTask != "":
		c.outcome = taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_ALREADY_REDRIVEN
		return c.forget(rows)
	}
	c.outcome, c.madeTask = taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN, c.newTask
	d := c.create(now)
	letter.Redrive = engine.Redrive{TaskID: c.newTask, At: now, By: c.by}
	d.changes.RedriveDeadLetters = []engine.DeadLetter{letter}
	return d.decision
}

// create is the new task with all messages, waiting for its first turn.
func (c *redrive) create(now time.Time) *draft {
	first, newest := c.messages[0], c.messages[len(c.messages)-1]
	d, _ := begin(now, &engine.Task{
		ID: c.newTask, Tenant: c.dead.Tenant, Agent: c.dead.Agent, Owner: c.dead.Owner, ContextID: c.dead.ContextID,
		Metadata: c.encoded, Traceparent: newest.info.GetTraceparent(),
	}, first.message, c.metadata)
	d.remember(first.encodedMessage, first.request, c.contextTTL)
	for _, m := range c.messages[1:] {
		d.append(m.message, m.info)
		d.remember(m.encodedMessage, m.request, c.contextTTL)
	}
	d.queue()
	return d
}

// forget drops the keys that were reserved in vain.
func (c *redrive) forget(rows *engine.Loaded) decision {
	var d decision
	for _, m := range c.messages {
		if rows.Reserved[m.dedupe.key] {
			d.changes.DropDedupe = append(d.changes.DropDedupe, m.dedupe.key)
		}
	}
	return d
}
