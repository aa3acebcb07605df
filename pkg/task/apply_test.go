package task_test

import (
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func text(s string) *a2apb.Part {
	return &a2apb.Part{Content: &a2apb.Part_Text{Text: s}}
}

func message(id, s string) *a2apb.Message {
	return &a2apb.Message{MessageId: id, TaskId: "t", ContextId: "c", Parts: []*a2apb.Part{text(s)}}
}

func status(s task.State, m *a2apb.Message) *a2apb.TaskStatusUpdateEvent {
	return &a2apb.TaskStatusUpdateEvent{
		TaskId: "t", ContextId: "c", Status: &a2apb.TaskStatus{State: s, Message: m},
	}
}

func chunk(id string, appended bool, parts ...string) *a2apb.TaskArtifactUpdateEvent {
	a := &a2apb.Artifact{ArtifactId: id}
	for _, p := range parts {
		a.Parts = append(a.Parts, text(p))
	}
	return &a2apb.TaskArtifactUpdateEvent{TaskId: "t", ContextId: "c", Artifact: a, Append: appended}
}

func newTask() *a2apb.Task {
	return &a2apb.Task{
		Id: "t", ContextId: "c",
		Status:  &a2apb.TaskStatus{State: task.Submitted},
		History: []*a2apb.Message{message("m1", "go")},
	}
}

func meta(t *testing.T, m map[string]any) *structpb.Struct {
	t.Helper()
	s, err := structpb.NewStruct(m)
	require.NoError(t, err)
	return s
}

func texts(a *a2apb.Artifact) []string {
	var out []string
	for _, p := range a.GetParts() {
		out = append(out, p.GetText())
	}
	return out
}

func ids(messages []*a2apb.Message) []string {
	var out []string
	for _, m := range messages {
		out = append(out, m.GetMessageId())
	}
	return out
}

func TestStatusMessageMovesIntoHistoryWhenTheNextStatusComes(t *testing.T) {
	t.Parallel()
	got := newTask()
	require.NoError(t, task.ApplyStatus(got, status(task.Working, message("a1", "thinking"))))
	require.Equal(t, []string{"m1"}, ids(got.GetHistory()))
	require.NoError(t, task.ApplyStatus(got, status(task.InputRequired, message("a2", "which?"))))
	require.Equal(t, []string{"m1", "a1"}, ids(got.GetHistory()))
	require.NoError(t, task.ApplyStatus(got, status(task.Working, nil)))
	require.NoError(t, task.AppendMessage(got, message("m2", "blue")))
	require.Equal(t, []string{"m1", "a1", "a2", "m2"}, ids(got.GetHistory()))
	require.Nil(t, got.GetStatus().GetMessage())
}

func TestEventMetadataMergesIntoTheTask(t *testing.T) {
	t.Parallel()
	got := newTask()
	got.Metadata = meta(t, map[string]any{"a": 1, "b": 1})
	e := status(task.Working, nil)
	e.Metadata = meta(t, map[string]any{"b": 2, "c": 3})
	require.NoError(t, task.ApplyStatus(got, e))
	require.Equal(t, map[string]any{"a": 1.0, "b": 2.0, "c": 3.0}, got.GetMetadata().AsMap())
}

func TestArtifactsAppendAndReplaceInPlace(t *testing.T) {
	t.Parallel()
	got := newTask()
	for _, e := range []*a2apb.TaskArtifactUpdateEvent{
		chunk("a1", false, "1"), chunk("a2", false, "x"), chunk("a1", true, "2", "3"),
	} {
		require.NoError(t, task.ApplyArtifact(got, e))
	}
	require.Len(t, got.GetArtifacts(), 2)
	require.Equal(t, []string{"1", "2", "3"}, texts(got.GetArtifacts()[0]))
	require.NoError(t, task.ApplyArtifact(got, chunk("a1", false, "new")))
	require.Equal(t, "a1", got.GetArtifacts()[0].GetArtifactId())
	require.Equal(t, []string{"new"}, texts(got.GetArtifacts()[0]))
}

func TestAChunkMergesMetadataAndExtensions(t *testing.T) {
	t.Parallel()
	a := &a2apb.Artifact{
		ArtifactId: "a", Name: "n", Extensions: []string{"x"}, Metadata: meta(t, map[string]any{"k": "old", "only": true}),
	}
	task.ExtendArtifact(a, &a2apb.Artifact{
		ArtifactId: "a", Description: "d", Extensions: []string{"x", "y"}, Metadata: meta(t, map[string]any{"k": "new"}),
	})
	require.Equal(t, "n", a.GetName())
	require.Equal(t, "d", a.GetDescription())
	require.Equal(t, []string{"x", "y"}, a.GetExtensions())
	require.Equal(t, map[string]any{"k": "new", "only": true}, a.GetMetadata().AsMap())
}

func TestAppendingToAnUnknownArtifactIsRefused(t *testing.T) {
	t.Parallel()
	got := newTask()
	require.ErrorIs(t, task.ApplyArtifact(got, chunk("a1", true, "1")), task.ErrUnknownArtifact)
	require.Empty(t, got.GetArtifacts())
}

func TestNothingIsAppliedAfterATerminalState(t *testing.T) {
	t.Parallel()
	for _, s := range []task.State{task.Completed, task.Failed, task.Canceled, task.Rejected} {
		got := newTask()
		got.Status.State = s
		before := proto.CloneOf(got)
		require.ErrorIs(t, task.ApplyStatus(got, status(task.Working, nil)), task.ErrTerminal)
		require.ErrorIs(t, task.ApplyArtifact(got, chunk("a", false, "1")), task.ErrTerminal)
		require.ErrorIs(t, task.AppendMessage(got, message("m", "late")), task.ErrTerminal)
		require.True(t, proto.Equal(before, got))
	}
}

func TestAnEventOfAnotherTaskOrContextIsRefused(t *testing.T) {
	t.Parallel()
	other := status(task.Working, nil)
	other.TaskId = "t2"
	require.ErrorIs(t, task.ApplyStatus(newTask(), other), task.ErrOtherTask)
	foreign := chunk("a", false, "1")
	foreign.ContextId = "c2"
	require.ErrorIs(t, task.ApplyArtifact(newTask(), foreign), task.ErrOtherTask)
}

func TestTheEventLogBuildsTheTask(t *testing.T) {
	t.Parallel()
	log := []*eventv1.Event{
		{Version: 1, Kind: &eventv1.Event_Created{Created: newTask()}},
		{Version: 2, Kind: &eventv1.Event_StatusUpdate{StatusUpdate: status(task.Working, nil)}},
		{Version: 3, Kind: &eventv1.Event_ArtifactUpdate{ArtifactUpdate: chunk("a", false, "1")}},
		{Version: 4, Kind: &eventv1.Event_UserMessage{UserMessage: &eventv1.UserMessage{Message: message("m2", "more")}}},
		{Version: 5, Kind: &eventv1.Event_StatusUpdate{StatusUpdate: status(task.Completed, message("a1", "done"))}},
	}
	var got *a2apb.Task
	for _, e := range log {
		var err error
		got, err = task.Apply(got, e)
		require.NoError(t, err)
	}
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Equal(t, []string{"m1", "m2"}, ids(got.GetHistory()))
	require.Equal(t, []string{"1"}, texts(got.GetArtifacts()[0]))

	_, err := task.Apply(got, log[0])
	require.Error(t, err, "a task is created once")
	_, err = task.Apply(newTask(), &eventv1.Event{Version: 2})
	require.Error(t, err, "an event without a kind says nothing")
}

func TestApplyingLeavesTheEventAlone(t *testing.T) {
	t.Parallel()
	got := newTask()
	first := chunk("a", false, "1")
	require.NoError(t, task.ApplyArtifact(got, first))
	require.NoError(t, task.ApplyArtifact(got, chunk("a", true, "2")))
	require.Equal(t, []string{"1"}, texts(first.GetArtifact()))
}

func TestHistoryIsTrimmedToTheNewest(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][]string{-1: {"1", "2", "3"}, 0: nil, 2: {"2", "3"}, 9: {"1", "2", "3"}} {
		got := &a2apb.Task{History: []*a2apb.Message{{MessageId: "1"}, {MessageId: "2"}, {MessageId: "3"}}}
		task.TrimHistory(got, n)
		require.Equal(t, want, ids(got.GetHistory()), "n = %d", n)
	}
}
