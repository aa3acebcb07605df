package binding

import (
	"errors"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
)

// Replay applies events to the Task that stands first among them, as a client
// would (A2A §4.2): statuses replace, artifacts replace or append, a further
// Task stands for all before it. Of the history it says nothing.
func Replay(events []Event) (*a2apb.Task, error) {
	if len(events) == 0 || events[0].GetTask() == nil {
		return nil, fmt.Errorf("the first event is no Task: %v", events)
	}
	var task *a2apb.Task
	for _, e := range events {
		var err error
		if task, err = Advance(task, e.StreamResponse); err != nil {
			return nil, err
		}
	}
	task.History = nil
	return task, nil
}

// Advance applies one event to a task, which it changes, and returns the task
// after it; that is another one where the event is a Task.
func Advance(task *a2apb.Task, e *a2apb.StreamResponse) (*a2apb.Task, error) {
	switch {
	case e.GetTask() != nil:
		next := proto.CloneOf(e.GetTask())
		if task != nil && next.GetId() != task.GetId() {
			return nil, fmt.Errorf("a snapshot of another task than %s: %v", task.GetId(), e)
		}
		return next, nil
	case e.GetStatusUpdate() != nil:
		task.Status = e.GetStatusUpdate().GetStatus()
	case e.GetArtifactUpdate() != nil:
		if err := apply(task, e.GetArtifactUpdate()); err != nil {
			return nil, err
		}
	default:
		return nil, fmt.Errorf("no event of a task: %v", e)
	}
	return task, belongs(task, e)
}

// belongs tells whether an event names the task that it is of.
func belongs(task *a2apb.Task, e *a2apb.StreamResponse) error {
	type named interface {
		GetTaskId() string
		GetContextId() string
	}
	var of named = e.GetStatusUpdate()
	if e.GetArtifactUpdate() != nil {
		of = e.GetArtifactUpdate()
	}
	if of.GetTaskId() != task.GetId() || of.GetContextId() != task.GetContextId() {
		return fmt.Errorf("an event of another task than %s: %v", task.GetId(), e)
	}
	return nil
}

func apply(task *a2apb.Task, update *a2apb.TaskArtifactUpdateEvent) error {
	chunk := proto.CloneOf(update.GetArtifact())
	for i, a := range task.GetArtifacts() {
		if a.GetArtifactId() != chunk.GetArtifactId() {
			continue
		}
		if update.GetAppend() {
			a.Parts = append(a.Parts, chunk.GetParts()...)
		} else {
			task.Artifacts[i] = chunk
		}
		return nil
	}
	if update.GetAppend() {
		return errors.New("a chunk appends to artifact " + chunk.GetArtifactId() + ", which no event began")
	}
	task.Artifacts = append(task.Artifacts, chunk)
	return nil
}

// Compare tells how what a stream told differs from what the task is; nil if in
// nothing. Histories are not compared.
func Compare(told, stored *a2apb.Task) error {
	stored = proto.CloneOf(stored)
	stored.History = nil
	if !proto.Equal(told, stored) {
		return fmt.Errorf("told  %v\nstored %v", told, stored)
	}
	return nil
}
