package storetest

import (
	"math"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func withMetadata(e *taskstorev1.TaskEvent, m map[string]any) *taskstorev1.TaskEvent {
	s, err := structpb.NewStruct(m)
	if err != nil {
		panic(err)
	}
	if u := e.GetStatusUpdate(); u != nil {
		u.Metadata = s
	} else {
		e.GetArtifactUpdate().Metadata = s
	}
	return e
}

var writeCases = map[string]func(*fixture){
	"each event has a version of its own and they commit together": func(f *fixture) {
		c := f.running()
		f.sent.take()
		version := f.emit(c, status(task.Working, "half way"), chunk("a", "x", false), chunk("a", "y", true), status(task.Completed, "done"))
		require.Equal(f, c.GetVersion()+4, version)
		events := f.events(c.GetTask().GetId())
		require.Len(f, events, int(version))
		for i, e := range events {
			require.EqualValues(f, i+1, e.GetVersion())
			require.Equal(f, c.GetTask().GetId(), e.GetTaskId())
			require.Equal(f, c.GetTask().GetContextId(), e.GetContextId())
			require.Equal(f, f.scope.GetTenant(), e.GetTenant())
			require.Equal(f, f.scope.GetAgent(), e.GetAgent())
		}
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Len(f, notices[0].Events, 4)
		for i, e := range notices[0].Events {
			require.True(f, proto.Equal(events[int(c.GetVersion())+i], e), "what is told is what is stored")
		}
	},
	"the events of a task build the task": func(f *fixture) {
		c := f.running()
		f.emit(c, withMetadata(status(task.Working, "one"), map[string]any{"k": "v"}), chunk("a", "x", false), status(task.Working, ""))
		f.accept(f.followUp(c.GetTask().GetId(), "more"))
		w := taskWrite(c, chunk("a", "y", true), chunk("b", "z", false), chunk("a", "w", false), status(task.Completed, "done"))
		w.HandledVersion = 6
		require.Zero(f, f.write(w).GetRefusal())
		var built *a2apb.Task
		for _, e := range f.events(c.GetTask().GetId()) {
			var err error
			built, err = task.Apply(built, e)
			require.NoError(f, err)
		}
		stored, _ := f.get(c.GetTask().GetId())
		require.True(f, proto.Equal(built, stored), "built:\n%v\nstored:\n%v", built, stored)
	},
	"a status message moves into the history when the next status comes": func(f *fixture) {
		c := f.running()
		f.emit(c, status(task.Working, "one"))
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, []string{"go"}, history(t))
		require.Equal(f, "one", texts(t.GetStatus().GetMessage().GetParts()))
		require.Equal(f, t.GetId(), t.GetStatus().GetMessage().GetTaskId())
		require.Equal(f, t.GetContextId(), t.GetStatus().GetMessage().GetContextId())
		f.emit(c, status(task.Working, ""))
		t, _ = f.get(c.GetTask().GetId())
		require.Equal(f, []string{"go", "one"}, history(t))
		require.Nil(f, t.GetStatus().GetMessage())
	},
	"the history is in the order in which its messages came": func(f *fixture) {
		c := f.running()
		f.emit(c, status(task.Working, "one"))
		f.accept(f.followUp(c.GetTask().GetId(), "more"))
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, []string{"go", "more"}, history(t), "the status message is no history yet")
		f.emit(c, status(task.Working, "two"))
		t, _ = f.get(c.GetTask().GetId())
		require.Equal(f, []string{"go", "one", "more"}, history(t))
	},
	"the store sets ids, role and times": func(f *fixture) {
		c := f.running()
		e := status(task.Completed, "done")
		e.GetStatusUpdate().Status.Timestamp = timestamppb.New(time.Unix(0, 0))
		e.GetStatusUpdate().Status.Message.MessageId = ""
		e.GetStatusUpdate().Status.Message.Role = a2apb.Role_ROLE_UNSPECIFIED
		f.clock.advance(1234567)
		f.emit(c, e)
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, f.clock.Now().Truncate(time.Millisecond), t.GetStatus().GetTimestamp().AsTime())
		require.NotEmpty(f, t.GetStatus().GetMessage().GetMessageId())
		require.Equal(f, a2apb.Role_ROLE_AGENT, t.GetStatus().GetMessage().GetRole())
	},
	"a clock that is set back moves no status back": func(f *fixture) {
		c := f.running()
		before := c.GetTask().GetStatus().GetTimestamp().AsTime()
		f.clock.advance(-time.Hour)
		f.emit(c, status(task.Working, "x"))
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, before, t.GetStatus().GetTimestamp().AsTime())
	},
	"metadata of status events merges into the task's": func(f *fixture) {
		c := f.running()
		f.emit(c, withMetadata(status(task.Working, ""), map[string]any{"a": 1, "b": 2}))
		f.emit(c, withMetadata(status(task.Completed, ""), map[string]any{"b": 3}))
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, map[string]any{"a": 1.0, "b": 3.0}, t.GetMetadata().AsMap())
	},
	"one bad event refuses the whole write": func(f *fixture) {
		c := f.running()
		f.sent.take()
		foreign := chunk("a", "x", false)
		foreign.GetArtifactUpdate().TaskId = task.NewID()
		elsewhere := status(task.Working, "x")
		elsewhere.GetStatusUpdate().Status.Message.ContextId = "elsewhere"
		for name, bad := range map[string]struct {
			event   *taskstorev1.TaskEvent
			refusal taskstorev1.Refusal
		}{
			"no kind":               {&taskstorev1.TaskEvent{}, taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"no state":              {status(0, ""), taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"unknown state":         {status(99, ""), taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"backwards":             {status(task.Submitted, ""), taskstorev1.Refusal_REFUSAL_ILLEGAL_MOVE},
			"no artifact id":        {chunk("", "x", false), taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"NUL in artifact id":    {chunk("a\x00", "x", false), taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"long artifact id":      {chunk(strings.Repeat("x", 300), "x", false), taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"another task":          {foreign, taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"message of another":    {elsewhere, taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
			"append to nothing":     {chunk("new", "x", true), taskstorev1.Refusal_REFUSAL_UNKNOWN_ARTIFACT},
			"larger than allowed":   {chunk("a", strings.Repeat("x", eventLimit), false), taskstorev1.Refusal_REFUSAL_TOO_LARGE},
			"after a settled state": {status(task.Working, "after"), taskstorev1.Refusal_REFUSAL_INVALID_EVENT},
		} {
			first := chunk("good", "x", false)
			if name == "after a settled state" {
				first = status(task.Completed, "")
			}
			require.Equal(f, bad.refusal, f.write(taskWrite(c, first, bad.event)).GetRefusal(), name)
		}
		require.Equal(f, taskstorev1.Refusal_REFUSAL_INVALID_EVENT, f.write(taskWrite(c)).GetRefusal(), "nothing to write")
		t, version := f.get(c.GetTask().GetId())
		require.Equal(f, c.GetVersion(), version)
		require.Empty(f, t.GetArtifacts())
		require.Empty(f, f.sent.take())
	},
	"a write that is sent again is committed once": func(f *fixture) {
		c := f.running()
		w := taskWrite(c, chunk("a", "x", false))
		w.Sequence = 1
		version := f.write(w).GetVersion()
		again := f.write(w)
		require.Zero(f, again.GetRefusal())
		require.Equal(f, version, again.GetVersion())
		last := taskWrite(c, chunk("a", "y", true), status(task.Completed, ""))
		last.Sequence = 2
		version = f.write(last).GetVersion()
		again = f.write(last)
		require.Zero(f, again.GetRefusal(), "also when it has ended the task")
		require.Equal(f, version, again.GetVersion())
		t, _ := f.get(c.GetTask().GetId())
		require.Equal(f, "x y", texts(t.GetArtifacts()[0].GetParts()))
	},
	"a new claim numbers its writes anew": func(f *fixture) {
		c := f.running()
		w := taskWrite(c, chunk("a", "x", false))
		w.Sequence = 1
		require.Zero(f, f.write(w).GetRefusal())
		require.Zero(f, f.release(c, true, 0))
		again := f.claim(c.GetTask().GetId())
		w = taskWrite(again, chunk("a", "y", false))
		w.Sequence = 1
		require.Equal(f, again.GetVersion()+1, f.write(w).GetVersion())
	},
	"a turn is not settled over a message that the handler has not seen": func(f *fixture) {
		c := f.running()
		f.accept(f.followUp(c.GetTask().GetId(), "wait, also this"))
		for _, state := range []task.State{task.Completed, task.InputRequired, task.Failed, task.Rejected} {
			require.Equal(f, taskstorev1.Refusal_REFUSAL_NEWER_MESSAGE, f.write(taskWrite(c, status(state, ""))).GetRefusal())
		}
		require.Zero(f, f.write(taskWrite(c, status(task.Working, "still at it"))).GetRefusal())
		w := taskWrite(c, status(task.Completed, ""))
		w.HandledVersion = 3
		require.Zero(f, f.write(w).GetRefusal())
	},
	"a handler can't have seen what was not sent": func(f *fixture) {
		w := taskWrite(f.running(), status(task.Completed, ""))
		w.HandledVersion = 100
		require.Equal(f, taskstorev1.Refusal_REFUSAL_INVALID_EVENT, f.write(w).GetRefusal())
	},
	"bytes and odd text come back as they were": func(f *fixture) {
		odd := "NUL \x00, \x01, emoji 👩‍👩‍👧, \u2028, \uFFFD, long s ſ"
		m := f.newMessage(odd)
		m.Metadata, _ = structpb.NewStruct(map[string]any{"\x00": odd, "big": 9007199254740993.0, "neg": math.Copysign(0, -1)})
		id := f.accept(f.request(m)).GetTask().GetId()
		c := f.claim(id)
		require.True(f, proto.Equal(m.GetMetadata(), c.GetTask().GetHistory()[0].GetMetadata()))
		f.emit(c, withMetadata(status(task.Working, odd), map[string]any{"\x00": odd}), chunk("ä\x01/", odd, false), status(task.Completed, odd))
		t, _ := f.get(id)
		require.Equal(f, []string{odd, odd}, history(t))
		require.Equal(f, odd, texts(t.GetArtifacts()[0].GetParts()))
		require.Equal(f, "ä\x01/", t.GetArtifacts()[0].GetArtifactId())
		require.Equal(f, odd, t.GetMetadata().AsMap()["\x00"])
	},
}
