package storetest

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func redriveAt(f *fixture, s *store.Store, r *taskstorev1.RedriveDeadLettersRequest) []*taskstorev1.RedriveResult {
	f.Helper()
	answer, err := s.RedriveDeadLetters(f.Context(), r)
	require.NoError(f, err)
	return answer.GetResults()
}

func (f *fixture) tryRedrive(id string) *taskstorev1.RedriveResult {
	f.Helper()
	results := redriveAt(f, f.store, &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{id}, By: "ops"})
	require.Len(f, results, 1)
	require.Equal(f, id, results[0].GetTaskId())
	return results[0]
}

// redrive redrives a dead letter for the first time and returns the new task's id.
func (f *fixture) redrive(id string) string {
	f.Helper()
	result := f.tryRedrive(id)
	require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN, result.GetOutcome())
	require.NotEqual(f, id, result.GetNewTaskId())
	return result.GetNewTaskId()
}

// selected redrives what a filter selects, within the case's own tenant.
func (f *fixture) selected(r *taskstorev1.RedriveDeadLettersRequest) []string {
	f.Helper()
	r.Filter = &taskstorev1.DeadLetterFilter{Tenant: f.scope.GetTenant()}
	ids := []string{}
	for _, result := range redriveAt(f, f.store, r) {
		require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN, result.GetOutcome())
		require.Equal(f, r.GetDryRun(), result.GetNewTaskId() == "")
		ids = append(ids, result.GetTaskId())
	}
	return ids
}

var redriveCases = map[string]func(*fixture){
	"a redriven task is like any accepted one and runs": func(f *fixture) {
		dead := f.dead("go")
		old, _ := f.get(dead)
		f.sent.take()
		id := f.redrive(dead)
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Len(f, notices[0].Events, 1)
		require.EqualValues(f, 1, notices[0].Work[0].GetEnqueueCount())
		t, version := f.get(id)
		require.EqualValues(f, 1, version)
		require.True(f, proto.Equal(t, notices[0].Events[0].GetCreated()), "the first event is the task")
		require.Equal(f, task.Submitted, t.GetStatus().GetState())
		require.Equal(f, old.GetContextId(), t.GetContextId())
		require.Equal(f, dead, t.GetMetadata().GetFields()["errand.redriven_from"].GetStringValue())
		require.Equal(f, []string{dead}, t.GetHistory()[0].GetReferenceTaskIds())
		require.NotEqual(f, old.GetHistory()[0].GetMessageId(), t.GetHistory()[0].GetMessageId())

		c := f.claim(id)
		require.Equal(f, "alice", c.GetOwner())
		require.EqualValues(f, 1, c.GetAttempt())
		require.Equal(f, []string{"text/plain"}, c.GetMessages()[0].GetRequest().GetAcceptedOutputModes())
		f.emit(c, status(task.Completed, "done"))
		f.requireOneEnd(id)
	},
	"its owner finds a redriven task in lists and in the context, others don't": func(f *fixture) {
		id := f.redrive(f.dead("go"))
		t, _ := f.get(id)
		require.Contains(f, f.listed(func(r *taskstorev1.ListTasksRequest) { r.ContextId = t.GetContextId() }), id)
		turns, err := f.store.ListTurns(f.Context(), &taskstorev1.ListTurnsRequest{Scope: f.scope, ContextId: t.GetContextId()})
		require.NoError(f, err)
		require.Len(f, turns.GetTurns(), 2)
		for _, scope := range f.foreigners() {
			_, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: scope, TaskId: id})
			f.refused(err, a2aerr.ReasonTaskNotFound)
		}
	},
	"the dead task stays as it was": func(f *fixture) {
		dead := f.dead("go")
		before, version := f.get(dead)
		events := len(f.events(dead))
		f.clock.advance(time.Hour)
		f.redrive(dead)
		after, now := f.get(dead)
		require.True(f, proto.Equal(before, after))
		require.Equal(f, version, now)
		require.Len(f, f.events(dead), events)
	},
	"the record tells what it became": func(f *fixture) {
		dead := f.dead("go")
		at := f.clock.advance(time.Minute)
		id := f.redrive(dead)
		want := &taskstorev1.Redrive{TaskId: id, Time: timestamppb.New(at), By: "ops"}
		require.True(f, proto.Equal(want, f.deadLetters(&taskstorev1.DeadLetterFilter{})[0].GetRedrive()))
	},
	"redriving twice is redriving once": func(f *fixture) {
		dead := f.dead("go")
		id := f.redrive(dead)
		again := f.tryRedrive(dead)
		require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_ALREADY_REDRIVEN, again.GetOutcome())
		require.Equal(f, id, again.GetNewTaskId())
		results := redriveAt(f, f.store, &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{dead, dead}, DryRun: true})
		require.Equal(f, id, results[1].GetNewTaskId())
		require.ElementsMatch(f, []string{dead, id}, f.listed(func(*taskstorev1.ListTasksRequest) {}))
	},
	"stores that redrive at the same time make one task": func(f *fixture) {
		for range 10 {
			dead := f.dead("go")
			results := make([]*taskstorev1.RedriveResult, 6)
			stores := []*store.Store{f.store, f.newStore(f.db.Engine), f.newStore(f.db.Engine)}
			var group sync.WaitGroup
			for i := range results {
				group.Go(func() {
					answer, err := stores[i%3].RedriveDeadLetters(f.Context(), &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{dead}})
					if err == nil {
						results[i] = answer.GetResults()[0]
					}
				})
			}
			group.Wait()
			made := 0
			for _, r := range results {
				require.NotNil(f, r)
				require.Equal(f, results[0].GetNewTaskId(), r.GetNewTaskId())
				if r.GetOutcome() == taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN {
					made++
				}
			}
			require.Equal(f, 1, made)
			f.claim(results[0].GetNewTaskId())
		}
		require.Len(f, f.listed(func(*taskstorev1.ListTasksRequest) {}), 20)
	},
	"what is no dead letter is not redriven": func(f *fixture) {
		alive := f.start("go")
		ids := []string{task.NewID(), "no id", alive, f.settled(task.Failed).GetTask().GetId()}
		for i, result := range redriveAt(f, f.store, &taskstorev1.RedriveDeadLettersRequest{TaskIds: ids}) {
			require.Equal(f, ids[i], result.GetTaskId())
			require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND, result.GetOutcome())
		}
	},
	"a letter that can't be redriven keeps none of the others": func(f *fixture) {
		first, second := f.dead("1"), f.dead("2")
		results := redriveAt(f, f.store, &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{first, task.NewID(), second}})
		require.NotEmpty(f, results[0].GetNewTaskId())
		require.Empty(f, results[1].GetNewTaskId())
		require.NotEmpty(f, results[2].GetNewTaskId())
	},
	"what can't be answered in time is not begun": func(f *fixture) {
		dead := f.dead("go")
		ctx, cancel := context.WithTimeout(f.Context(), 900*time.Millisecond)
		defer cancel()
		answer, err := f.store.RedriveDeadLetters(ctx, &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{dead}})
		require.NoError(f, err)
		require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_UNAVAILABLE, answer.GetResults()[0].GetOutcome())
		f.redrive(dead)
	},
	"a filter redrives what it selects, the newest first, up to a bound": func(f *fixture) {
		var dead []string
		for range 3 {
			dead = append([]string{f.dead("go")}, dead...)
			f.clock.advance(time.Second)
		}
		require.Equal(f, dead, f.selected(&taskstorev1.RedriveDeadLettersRequest{DryRun: true}))
		require.Len(f, f.listed(func(*taskstorev1.ListTasksRequest) {}), 3, "a dry run does nothing")
		require.Equal(f, dead[:2], f.selected(&taskstorev1.RedriveDeadLettersRequest{Limit: 2}))
		require.Equal(f, dead[2:], f.selected(&taskstorev1.RedriveDeadLettersRequest{}))
		require.Empty(f, f.selected(&taskstorev1.RedriveDeadLettersRequest{}))
		require.Len(f, f.listed(func(*taskstorev1.ListTasksRequest) {}), 6)
	},
	"a sender's retry gets the dead task, and a copy of the new one's message gets that": func(f *fixture) {
		request := f.request(f.newMessage("go"))
		dead := f.giveUp(f.accept(request).GetTask().GetId())
		id := f.redrive(dead)
		request.NewTaskId = task.NewID()
		retry := f.accept(request)
		require.True(f, retry.GetDuplicate())
		require.Equal(f, dead, retry.GetTask().GetId())

		t, _ := f.get(id)
		copied := f.accept(f.request(t.GetHistory()[0]))
		require.True(f, copied.GetDuplicate())
		require.Equal(f, id, copied.GetTask().GetId())
		require.EqualValues(f, 1, copied.GetAcceptedVersion())
	},
	"a redriven task takes follow-ups, the dead one none": func(f *fixture) {
		dead := f.dead("go")
		id := f.redrive(dead)
		_, err := f.tryAccept(f.followUp(dead, "more"))
		f.refused(err, a2aerr.ReasonUnsupportedOperation)
		more := f.followUp(id, "more")
		f.accept(more)
		require.True(f, f.accept(more).GetDuplicate())
		c := f.claim(id)
		require.Len(f, c.GetMessages(), 2)
		f.emit(c, status(task.InputRequired, "well?"))
		f.accept(f.followUp(id, "yes"))
		f.emit(f.claim(id), status(task.Completed, ""))
	},
	"a task that died in its second turn starts again with all that was said": func(f *fixture) {
		c := f.running()
		dead := c.GetTask().GetId()
		f.emit(c, chunk("a", "half", false), status(task.InputRequired, "well?"))
		answer := f.followUp(dead, "yes")
		answer.Request.Traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
		answer.Request.Extensions = []string{"https://example.com/ext"}
		f.accept(answer)
		f.giveUp(dead)

		id := f.redrive(dead)
		t, version := f.get(id)
		require.EqualValues(f, 2, version)
		require.Equal(f, []string{"go", "yes"}, history(t))
		require.Empty(f, t.GetArtifacts())
		claim := f.claim(id)
		require.Zero(f, claim.GetHandledVersion(), "nothing has been handled")
		require.Len(f, claim.GetMessages(), 2)
		require.True(f, proto.Equal(answer.GetRequest(), claim.GetMessages()[1].GetRequest()))
		require.Empty(f, claim.GetMessages()[1].GetMessage().GetReferenceTaskIds())
		for i, m := range claim.GetMessages() {
			require.EqualValues(f, i+1, m.GetVersion())
			require.Equal(f, id, m.GetMessage().GetTaskId())
			require.Equal(f, t.GetContextId(), m.GetMessage().GetContextId())
		}
		f.emit(claim, status(task.Completed, ""))
		f.requireOneEnd(id)
	},
	"a redriven task that dies again is a dead letter of its own": func(f *fixture) {
		dead := f.dead("go")
		second := f.giveUp(f.redrive(dead))
		third := f.redrive(second)
		t, _ := f.get(third)
		require.Equal(f, []string{dead, second}, t.GetHistory()[0].GetReferenceTaskIds())
		require.Equal(f, second, t.GetMetadata().GetFields()["errand.redriven_from"].GetStringValue())
		require.Equal(f, second, f.tryRedrive(dead).GetNewTaskId())
	},
	"a dead letter that is purged while it is redriven leaves no key behind": func(f *fixture) {
		dead := f.dead("go")
		lost := f.newStore(&purging{Engine: f.db.Engine, purge: func() error {
			return f.db.Exec(f.Context(), "DELETE FROM dead_letters WHERE task_id = '"+dead+"'")
		}})
		results := redriveAt(f, lost, &taskstorev1.RedriveDeadLettersRequest{TaskIds: []string{dead}})
		require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND, results[0].GetOutcome())
		t, _ := f.get(dead)
		copied := proto.CloneOf(t.GetHistory()[0])
		copied.TaskId, copied.ContextId, copied.MessageId = "", "", uuid.NewSHA1(uuid.MustParse(dead), []byte("1")).String()
		require.False(f, f.accept(f.request(copied)).GetDuplicate())
	},
	"a redrive that makes no sense is refused": func(f *fixture) {
		yes := true
		for _, bad := range []*taskstorev1.RedriveDeadLettersRequest{
			{},
			{TaskIds: []string{task.NewID()}, Filter: &taskstorev1.DeadLetterFilter{}},
			{TaskIds: make([]string, 1001)},
			{TaskIds: []string{task.NewID()}, By: strings.Repeat("x", 257)},
			{TaskIds: []string{task.NewID()}, By: "\x00"},
			{Filter: &taskstorev1.DeadLetterFilter{Redriven: &yes}},
			{Filter: &taskstorev1.DeadLetterFilter{Reason: "bad luck"}},
			{Filter: &taskstorev1.DeadLetterFilter{}, Limit: 1001},
			{Filter: &taskstorev1.DeadLetterFilter{}, Limit: -1},
		} {
			_, err := f.store.RedriveDeadLetters(f.Context(), bad)
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
	},
	"the database refuses to redrive a letter twice": func(f *fixture) {
		dead := f.dead("go")
		f.redrive(dead)
		letter, err := f.db.Engine.ReadDeadLetter(f.Context(), dead)
		require.NoError(f, err)
		letter.Redrive.TaskID = task.NewID()
		require.ErrorIs(f, f.change(&engine.Changes{RedriveDeadLetters: []engine.DeadLetter{letter}}), engine.ErrConflict)
	},
}

// requireOneEnd reads a task's log: versions without a hole and one end, the last.
func (f *fixture) requireOneEnd(id string) {
	f.Helper()
	log := f.events(id)
	for i, e := range log {
		require.EqualValues(f, i+1, e.GetVersion())
		require.Equal(f, i == len(log)-1, task.Terminal(e.GetStatusUpdate().GetStatus().GetState()))
	}
}

// purging is an engine whose purge comes just before each update.
type purging struct {
	engine.Engine

	purge func() error
}

func (e *purging) Update(ctx context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error)) error {
	if err := e.purge(); err != nil {
		return err
	}
	return e.Engine.Update(ctx, sel, decide)
}
