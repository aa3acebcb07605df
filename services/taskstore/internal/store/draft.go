package store

import (
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// draft is a task that is being changed. It gives out versions, one for each
// event, and collects what the change writes and tells.
type draft struct {
	decision
	now  time.Time
	row  *engine.Task
	read engine.Task
}

// revise starts a change of a loaded row.
func revise(now time.Time, loaded *engine.Task) *draft {
	row := *loaded
	return &draft{now: now, row: &row, read: *loaded}
}

// done is the decision to make the change.
func (d *draft) done() decision {
	d.changes.UpdateTasks = append(d.changes.UpdateTasks, engine.TaskUpdate{
		ReadVersion: d.read.Version, ReadLeaseEpoch: d.read.LeaseEpoch, Task: d.row,
	})
	return d.decision
}

// event takes the next version for something that happened.
func (d *draft) event() *eventv1.Event {
	d.row.Version++
	e := &eventv1.Event{
		Tenant: d.row.Tenant, Agent: d.row.Agent, TaskId: d.row.ID, ContextId: d.row.ContextID,
		Version: d.row.Version, Time: timestamppb.New(d.now),
	}
	d.notice.Events = append(d.notice.Events, e)
	return e
}

// status moves the task to a state. The message, if any, is complete and
// encoded; metadata is what the event says beside it.
func (d *draft) status(state task.State, message *encodedMessage, metadata *structpb.Struct) {
	e := d.event()
	d.row.State = state
	d.row.StatusVersion = e.GetVersion()
	if d.now.After(d.row.StatusTime) { // a clock that was set back moves no task behind
		d.row.StatusTime = d.now
	}
	update := &a2apb.TaskStatusUpdateEvent{
		TaskId: d.row.ID, ContextId: d.row.ContextID, Metadata: metadata,
		Status: &a2apb.TaskStatus{State: state, Timestamp: timestamppb.New(d.row.StatusTime)},
	}
	if message != nil {
		update.Status.Message = message.message
		d.row.ContentBytes += int64(len(message.data))
		d.changes.Messages = append(d.changes.Messages, engine.Message{
			TaskID: d.row.ID, Version: e.GetVersion(), Kind: engine.MessageStatus, Data: message.data,
		})
	}
	e.Kind = &eventv1.Event_StatusUpdate{StatusUpdate: update}
	if task.Terminal(state) {
		d.row.TerminalAt = d.now
	}
}

// append adds a sender's message.
func (d *draft) append(m *a2apb.Message, request *eventv1.RequestInfo) {
	e := d.event()
	e.Kind = &eventv1.Event_UserMessage{UserMessage: &eventv1.UserMessage{
		Message: m, Request: request, Version: e.GetVersion(),
	}}
	d.row.MessageVersion = e.GetVersion()
}

// queue makes the task wait for a claim.
func (d *draft) queue() {
	d.row.Phase = engine.PhaseQueued
	d.row.QueuedAt = d.now
	d.row.DueAt = time.Time{}
	d.row.Holder = ""
	d.enqueue()
}

// enqueue tells executors that the task waits.
func (d *draft) enqueue() {
	d.row.EnqueueCount++
	d.notice.Work = append(d.notice.Work, &executorv1.WorkItem{
		Tenant: d.row.Tenant, Agent: d.row.Agent, TaskId: d.row.ID,
		Version: d.row.Version, EnqueueCount: d.row.EnqueueCount,
	})
}

// unlease takes the lease away, if there is one.
func (d *draft) unlease() {
	if d.row.Phase == engine.PhaseLeased {
		d.changes.DropLeases = append(d.changes.DropLeases, d.row.ID)
	}
	d.row.Holder = ""
}

// settle ends the turn: nobody works on the task, and attempts start anew.
func (d *draft) settle() {
	d.unlease()
	d.row.Phase = engine.PhaseIdle
	d.row.QueuedAt, d.row.DueAt, d.row.TurnStartedAt = time.Time{}, time.Time{}, time.Time{}
	d.row.Attempt = 0
	d.row.GrantHash = nil
}

// fail ends the task by the store's own decision. Text is safe to show.
func (d *draft) fail(message *encodedMessage, reason string) {
	attempts := d.row.Attempt
	d.status(task.Failed, message, nil)
	d.settle()
	d.changes.DeadLetters = append(d.changes.DeadLetters, engine.DeadLetter{
		TaskID: d.row.ID, Tenant: d.row.Tenant, Agent: d.row.Agent, Owner: d.row.Owner, ContextID: d.row.ContextID,
		Reason: reason, Attempts: attempts, LastHolder: d.read.Holder, At: d.now,
	})
}

// controlCanceled tells the holder of the lease, if there is one, to stop.
func (d *draft) controlCanceled(metadata *structpb.Struct) {
	d.control(&executorv1.Control{
		Kind: &executorv1.Control_Canceled{Canceled: &executorv1.Canceled{Metadata: metadata}},
	})
}

// controlOverrun tells the holder of the lease, if there is one, that its turn
// took too long.
func (d *draft) controlOverrun() {
	d.control(&executorv1.Control{Kind: &executorv1.Control_Overrun{Overrun: &executorv1.Overrun{}}})
}

// controlAppended tells the holder of the lease, if there is one, that the
// newest message is for it.
func (d *draft) controlAppended() {
	d.control(&executorv1.Control{
		Kind: &executorv1.Control_MessageAppended{MessageAppended: &executorv1.MessageAppended{Version: d.row.MessageVersion}},
	})
}

func (d *draft) control(c *executorv1.Control) {
	if d.read.Phase != engine.PhaseLeased {
		return
	}
	c.TaskId, c.LeaseEpoch = d.row.ID, d.read.LeaseEpoch
	d.notice.Controls = append(d.notice.Controls, Control{Holder: d.read.Holder, Message: c})
}

// wake moves a parked task on: whoever answers resumes it, and a grant is used up.
func (d *draft) wake() {
	d.status(task.Working, nil, nil)
	d.row.GrantHash = nil
	d.row.Attempt = 0
}

// delay makes the task wait before it is queued: nobody is told until then.
func (d *draft) delay(by time.Duration) {
	d.row.Phase = engine.PhaseQueued
	d.row.QueuedAt = d.now
	d.row.DueAt = d.now.Add(by)
	d.row.Holder = ""
}
