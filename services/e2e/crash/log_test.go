package crash_test

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/assert"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// log: the event log in the store has each version once and in order, from the
// creation to the one end, and makes the task.
func (c *checker) log(ctx context.Context, p promise, task *a2apb.Task) {
	events, version := c.readLog(ctx, p.taskID)
	assert.Len(c, events, int(version), "task %s: a version has no event", p.taskID)
	var told []binding.Event
	messages := 1 // in the creation
	for i, e := range events {
		assert.Equal(c, int64(i+1), e.GetVersion(), "task %s", p.taskID)
		assert.Equal(c, i == 0, e.GetCreated() != nil, "task %s, version %d: %v", p.taskID, e.GetVersion(), e)
		last := i == len(events)-1
		assert.Equal(c, last, terminal(e.GetStatusUpdate().GetStatus().GetState()), "task %s, version %d: %v", p.taskID, e.GetVersion(), e)
		if e.GetUserMessage() != nil {
			messages++
			continue
		}
		told = append(told, binding.Event{StreamResponse: asSent(e)})
	}
	assert.Equal(c, p.messages, messages, "task %s", p.taskID)
	logged, err := binding.Replay(told)
	if assert.NoError(c, err, "task %s", p.taskID) {
		assert.NoError(c, binding.Compare(logged, task), "the log tells another task")
	}
}

func (c *checker) readLog(ctx context.Context, id string) (events []*eventv1.Event, version int64) {
	scope := &taskstorev1.Scope{Tenant: "default", Subject: "anonymous"}
	for {
		page, err := c.store.ListEvents(ctx, &taskstorev1.ListEventsRequest{Scope: scope, TaskId: id, After: int64(len(events))})
		if !assert.NoError(c, err) {
			return events, version
		}
		version = page.GetVersion()
		events = append(events, page.GetEvents()...)
		if len(page.GetEvents()) == 0 || int64(len(events)) >= version {
			return events, version
		}
	}
}

// asSent is an event as streams carry it.
func asSent(e *eventv1.Event) *a2apb.StreamResponse {
	switch kind := e.GetKind().(type) {
	case *eventv1.Event_Created:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{Task: kind.Created}}
	case *eventv1.Event_StatusUpdate:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_StatusUpdate{StatusUpdate: kind.StatusUpdate}}
	case *eventv1.Event_ArtifactUpdate:
		return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_ArtifactUpdate{ArtifactUpdate: kind.ArtifactUpdate}}
	default:
		return &a2apb.StreamResponse{}
	}
}
