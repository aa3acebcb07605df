package store

import (
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"
)

// The edge has checked what senders send; what is checked here again is what
// rows rely on: keys that an index can hold, and values within the limits.

func (s *Store) checkMessage(scope *taskstorev1.Scope, m *a2apb.Message) error {
	if err := s.checkScope(scope); err != nil {
		return err
	}
	if m == nil {
		return a2aerr.Invalid("message", "must be present")
	}
	if err := s.checkID("message.messageId", m.GetMessageId()); err != nil {
		return err
	}
	if m.GetContextId() != "" {
		if err := s.checkID("message.contextId", m.GetContextId()); err != nil {
			return err
		}
	}
	return s.checkSize("message", m, s.Agents.Limits.Event)
}

// checkScope wants what every write of a sender has.
func (s *Store) checkScope(scope *taskstorev1.Scope) error {
	if err := checkName("scope.tenant", scope.GetTenant()); err != nil {
		return err
	}
	if err := checkName("scope.agent", scope.GetAgent()); err != nil {
		return err
	}
	return s.checkID("scope.subject", scope.GetSubject())
}

// scope is what a caller may see. An empty member of it would not limit, so it
// must not come from a request by accident.
func (s *Store) scope(of *taskstorev1.Scope) (engine.Scope, error) {
	if of.GetTenant() == "" {
		return engine.Scope{}, a2aerr.Invalid("scope.tenant", "must be present")
	}
	scope := engine.Scope{Tenant: of.GetTenant(), Agent: of.GetAgent()}
	if of.GetOwnedOnly() {
		if of.GetSubject() == "" {
			return engine.Scope{}, a2aerr.Invalid("scope.subject", "must be present with ownedOnly")
		}
		scope.Owner = of.GetSubject()
	}
	return scope, nil
}

// checkName wants a name that NATS can carry too: events of a task with another
// one could not be published, and would hold up all that follow.
func checkName(field, name string) error {
	if !task.ValidName(name) {
		return a2aerr.Invalid(field, fmt.Sprintf("1 to %d of a-z, 0-9 and '-'", task.MaxName))
	}
	return nil
}

// checkID wants text that is a key in any database: not empty, of bounded
// length, and without U+0000, which Postgres can't store in text.
func (s *Store) checkID(field, id string) error {
	limit := s.Agents.Limits.ID
	if id == "" || len(id) > limit || strings.ContainsRune(id, 0) {
		return a2aerr.Invalid(field, fmt.Sprintf("1 to %d bytes without U+0000", limit))
	}
	return nil
}

func (s *Store) checkSize(field string, m proto.Message, limit int) error {
	if proto.Size(m) > limit {
		return a2aerr.TooLarge(field, bytesAtMost(limit))
	}
	return nil
}

func bytesAtMost(n int) string { return fmt.Sprintf("at most %d bytes", n) }

func (s *Store) checkHistoryLength(n *int32) error {
	if n != nil && *n < 0 {
		return a2aerr.Invalid("historyLength", "0 or more")
	}
	return nil
}

// historyLength is how many messages a task is returned with.
func (s *Store) historyLength(n *int32) int {
	if n == nil {
		return s.Agents.Limits.History
	}
	return min(int(*n), s.Agents.Limits.History)
}

// detail is how much of a task an answer shows.
func (s *Store) detail(historyLength *int32) engine.Detail {
	return engine.Detail{History: s.historyLength(historyLength), Artifacts: true}
}

// canonicalID tells whether an id is a UUID in its canonical text form.
func canonicalID(id string) bool {
	parsed, err := uuid.Parse(id)
	return err == nil && parsed.String() == id
}

// validArtifactID is checkID for what a handler names.
func validArtifactID(id string, limit int) bool {
	return id != "" && len(id) <= limit && !strings.ContainsRune(id, 0)
}
