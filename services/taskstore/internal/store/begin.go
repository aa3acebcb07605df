package store

import (
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// begin starts a task with a message. The row says whose it is; the created task
// is what senders are shown first.
func begin(now time.Time, row *engine.Task, first *a2apb.Message, metadata *structpb.Struct) (*draft, *a2apb.Task) {
	row.CreatedAt, row.StatusTime = now, now
	row.State, row.StatusVersion, row.MessageVersion = task.Submitted, 1, 1
	created := &a2apb.Task{
		Id: row.ID, ContextId: row.ContextID, Metadata: metadata,
		Status:  &a2apb.TaskStatus{State: task.Submitted, Timestamp: timestamppb.New(now)},
		History: []*a2apb.Message{first},
	}
	d := &draft{now: now, row: row}
	d.event().Kind = &eventv1.Event_Created{Created: created}
	d.changes.InsertTasks = []*engine.Task{row}
	return d, created
}

// remember keeps the newest message, with its encoded request, and its context.
func (d *draft) remember(m *encodedMessage, request []byte, contextTTL time.Duration) {
	d.row.ContentBytes += weight(m, request)
	d.changes.Messages = append(d.changes.Messages, engine.Message{
		TaskID: d.row.ID, Version: d.row.MessageVersion, Kind: engine.MessageUser, Data: m.data, Request: request,
	})
	d.changes.TouchContexts = []engine.Context{{
		ContextKey: engine.ContextKey{Tenant: d.row.Tenant, Owner: d.row.Owner, Agent: d.row.Agent, ContextID: d.row.ContextID},
		CreatedAt:  d.now, UpdatedAt: d.now, ExpiresAt: d.now.Add(contextTTL),
	}}
}

// weight is what a message takes of the task's bounds. A claim carries it twice,
// in the history and with its request.
func weight(m *encodedMessage, request []byte) int64 {
	return int64(2*len(m.data) + len(request))
}
