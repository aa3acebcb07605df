package storetest

import (
	"context"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
)

// loadAtOnce is how many tasks one transaction of Load inserts.
const loadAtOnce = 2000

// parked is how many of the tasks that Load makes are INPUT_REQUIRED, however
// many there are.
const parked = 200

// Load fills a database with tasks as they are when they are over, past the
// rules and quickly: tenant t, agent a, three in four of owner-1, two in three
// in context-1, nearly all COMPLETED, a minute between two of them. So each list
// but the one of a rare state has more than 10,000 matches among 20,000 tasks.
func Load(ctx context.Context, w engine.Writer, tasks int) (ids []string, err error) {
	at := time.Now().Add(-time.Duration(tasks) * time.Minute).UTC().Truncate(time.Millisecond)
	for len(ids) < tasks {
		changes := &engine.Changes{}
		for range min(loadAtOnce, tasks-len(ids)) {
			id, err := loadTask(changes, len(ids), at.Add(time.Duration(len(ids))*time.Minute))
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		err := w.Update(ctx, engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) { return changes, nil })
		if err != nil {
			return nil, fmt.Errorf("load tasks: %w", err)
		}
	}
	return ids, nil
}

// loadTask adds a task that is queued and then over: a terminal one takes no message.
func loadTask(changes *engine.Changes, i int, at time.Time) (id string, err error) {
	queued := engine.Task{
		ID: task.NewID(), Tenant: "t", Agent: "a", Owner: "owner-1", ContextID: "context-1",
		CreatedAt: at, State: task.Submitted, StatusVersion: 1, StatusTime: at, Version: 1, MessageVersion: 1,
		Phase: engine.PhaseQueued, QueuedAt: at, EnqueueCount: 1,
	}
	if i%4 == 0 {
		queued.Owner = fmt.Sprint("owner-", i%100)
	}
	if i%3 == 0 {
		queued.ContextID = fmt.Sprint("context-", i)
	}
	over := queued
	over.Version, over.StatusVersion, over.HandledVersion = 3, 3, 1
	over.Phase, over.QueuedAt = engine.PhaseIdle, time.Time{}
	over.State, over.TerminalAt = task.Completed, at
	if i < parked {
		over.State, over.TerminalAt = task.InputRequired, time.Time{}
	}
	asked, err := proto.Marshal(&a2apb.Message{
		MessageId: over.ID, TaskId: over.ID, ContextId: over.ContextID, Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{part("do something for me")},
	})
	if err != nil {
		return "", fmt.Errorf("encode message: %w", err)
	}
	changes.InsertTasks = append(changes.InsertTasks, &queued)
	changes.Messages = append(changes.Messages, engine.Message{TaskID: over.ID, Version: 1, Kind: engine.MessageUser, Data: asked})
	changes.UpdateTasks = append(changes.UpdateTasks, engine.TaskUpdate{ReadVersion: 1, Task: &over})
	return over.ID, nil
}
