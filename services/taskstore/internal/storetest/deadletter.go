package storetest

import (
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// giveUp loses claims of a queued task until it is given up.
func (f *fixture) giveUp(id string) string {
	f.Helper()
	for range maxAttempts {
		require.Zero(f, f.release(f.claim(id), true, 0))
	}
	t, _ := f.get(id)
	require.Equal(f, task.Failed, t.GetStatus().GetState())
	return id
}

// dead is a task that was given up.
func (f *fixture) dead(text string) string {
	f.Helper()
	return f.giveUp(f.start(text))
}

// deadLetters lists by a filter, within the case's own tenant.
func (f *fixture) deadLetters(filter *taskstorev1.DeadLetterFilter) []*taskstorev1.DeadLetter {
	f.Helper()
	filter.Tenant = f.scope.GetTenant()
	answer, err := f.store.ListDeadLetters(f.Context(), &taskstorev1.ListDeadLettersRequest{Filter: filter})
	require.NoError(f, err)
	require.Empty(f, answer.GetNextPageToken())
	return answer.GetDeadLetters()
}

func (f *fixture) deadIDs(filter *taskstorev1.DeadLetterFilter) []string {
	f.Helper()
	return idsOf(f.deadLetters(filter))
}

func idsOf(letters []*taskstorev1.DeadLetter) []string {
	ids := []string{}
	for _, l := range letters {
		ids = append(ids, l.GetTaskId())
	}
	return ids
}

func (f *fixture) purgeDeadLetters(before time.Time) {
	f.Helper()
	f.purged(func(limit int) (int, error) { return f.db.Engine.PurgeDeadLetters(f.Context(), before, limit) })
}

var deadLetterCases = map[string]func(*fixture){
	"what was given up is listed with all that an operator asks for": func(f *fixture) {
		id := f.dead("go")
		t, _ := f.get(id)
		letters := f.deadLetters(&taskstorev1.DeadLetterFilter{})
		require.Len(f, letters, 1)
		require.True(f, proto.Equal(&taskstorev1.DeadLetter{
			TaskId: id, Tenant: f.scope.GetTenant(), Agent: f.scope.GetAgent(), Owner: "alice", ContextId: t.GetContextId(),
			Reason: "max_attempts", Attempts: maxAttempts, LastHolder: holder, GivenUpAt: timestamppb.New(f.clock.Now()),
		}, letters[0]), "%v", letters[0])
	},
	"what its agent failed, a sender canceled or nobody ended is no dead letter": func(f *fixture) {
		f.settled(task.Failed)
		f.settled(task.Canceled)
		f.settled(task.Rejected)
		f.settled(task.Working)
		require.Empty(f, f.deadIDs(&taskstorev1.DeadLetterFilter{}))
	},
	"a task whose claims were all lost tells its sender so, and no more": func(f *fixture) {
		id := f.start("go")
		for range maxAttempts {
			c := f.claim(id)
			f.clock.advance(lease + time.Millisecond)
			f.expireLease(c)
		}
		t, _ := f.get(id)
		require.Equal(f, task.Failed, t.GetStatus().GetState())
		require.Equal(f, "The agent did not finish this task.", texts(t.GetStatus().GetMessage().GetParts()))
		require.Equal(f, []string{id}, f.deadIDs(&taskstorev1.DeadLetterFilter{Reason: "max_attempts"}))
	},
	"drains, however many, use no attempt up and make no dead letter": func(f *fixture) {
		id := f.start("go")
		require.Zero(f, f.release(f.claim(id), true, 0))
		for range 3 * maxAttempts {
			c := f.claim(id)
			require.EqualValues(f, 2, c.GetAttempt())
			require.Zero(f, f.release(c, false, 0))
		}
		f.emit(f.claim(id), status(task.Completed, ""))
		require.Empty(f, f.deadIDs(&taskstorev1.DeadLetterFilter{}))
	},
	"the newest dead letter comes first": func(f *fixture) {
		first := f.dead("1")
		f.clock.advance(time.Second)
		second := f.dead("2")
		require.Equal(f, []string{second, first}, f.deadIDs(&taskstorev1.DeadLetterFilter{}))
	},
	"a filter leaves out what it doesn't name": func(f *fixture) {
		began := f.clock.Now()
		lost := f.dead("lost")
		ended := f.clock.advance(time.Second)
		parked := f.settled(task.InputRequired).GetTask().GetId()
		result := f.store.ExpireParked(f.Context(), []string{parked}, f.clock.advance(time.Second))[0]
		require.Equal(f, store.GivenUp, result.Value)
		f.redrive(lost)
		yes, no := true, false
		for _, c := range []struct {
			filter *taskstorev1.DeadLetterFilter
			want   []string
		}{
			{&taskstorev1.DeadLetterFilter{}, []string{parked, lost}},
			{&taskstorev1.DeadLetterFilter{Agent: f.scope.GetAgent()}, []string{parked, lost}},
			{&taskstorev1.DeadLetterFilter{Agent: "another"}, []string{}},
			{&taskstorev1.DeadLetterFilter{Reason: "max_attempts"}, []string{lost}},
			{&taskstorev1.DeadLetterFilter{Reason: "max_runtime"}, []string{}},
			{&taskstorev1.DeadLetterFilter{Reason: "input_timeout"}, []string{parked}},
			{&taskstorev1.DeadLetterFilter{Redriven: &yes}, []string{lost}},
			{&taskstorev1.DeadLetterFilter{Redriven: &no}, []string{parked}},
			{&taskstorev1.DeadLetterFilter{Since: timestamppb.New(began)}, []string{parked, lost}},
			{&taskstorev1.DeadLetterFilter{Since: timestamppb.New(began.Add(time.Nanosecond))}, []string{parked}},
			{&taskstorev1.DeadLetterFilter{Until: timestamppb.New(began)}, []string{}},
			{&taskstorev1.DeadLetterFilter{Until: timestamppb.New(began.Add(time.Nanosecond))}, []string{lost}},
			{&taskstorev1.DeadLetterFilter{Since: timestamppb.New(began), Until: timestamppb.New(ended)}, []string{lost}},
		} {
			require.Equal(f, c.want, f.deadIDs(c.filter), "%v", c.filter)
		}
	},
	"another tenant's dead letters are not among those of a tenant": func(f *fixture) {
		mine := f.dead("mine")
		other := newFixture(f.T, f.db)
		theirs := other.dead("theirs")
		require.Equal(f, []string{mine}, f.deadIDs(&taskstorev1.DeadLetterFilter{}))
		require.Equal(f, []string{theirs}, other.deadIDs(&taskstorev1.DeadLetterFilter{}))
	},
	"pages show each dead letter once, also those of one moment": func(f *fixture) {
		var want []string
		for i := range 7 {
			if i%3 == 0 {
				f.clock.advance(time.Second)
			}
			want = append(want, f.dead("go"))
		}
		request := &taskstorev1.ListDeadLettersRequest{
			Filter: &taskstorev1.DeadLetterFilter{Tenant: f.scope.GetTenant()}, PageSize: 2,
		}
		var got []*taskstorev1.DeadLetter
		for pages := 1; ; pages++ {
			answer, err := f.store.ListDeadLetters(f.Context(), request)
			require.NoError(f, err)
			got = append(got, answer.GetDeadLetters()...)
			if request.PageToken = answer.GetNextPageToken(); request.GetPageToken() == "" {
				require.Equal(f, 4, pages)
				break
			}
			require.Len(f, answer.GetDeadLetters(), 2)
			f.clock.advance(time.Second)
			f.dead("newer")
		}
		require.ElementsMatch(f, want, idsOf(got))
		require.IsNonIncreasing(f, timesOf(got))
	},
	"a page token is for its own list": func(f *fixture) {
		f.dead("1")
		f.dead("2")
		request := &taskstorev1.ListDeadLettersRequest{
			Filter: &taskstorev1.DeadLetterFilter{Tenant: f.scope.GetTenant()}, PageSize: 1,
		}
		answer, err := f.store.ListDeadLetters(f.Context(), request)
		require.NoError(f, err)
		request.PageToken = answer.GetNextPageToken()
		request.Filter.Reason = "max_attempts"
		_, err = f.store.ListDeadLetters(f.Context(), request)
		f.refused(err, a2aerr.ReasonInvalidParams)
		request.PageToken = "forged"
		_, err = f.store.ListDeadLetters(f.Context(), request)
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
	"a list that makes no sense is refused": func(f *fixture) {
		for _, bad := range []*taskstorev1.ListDeadLettersRequest{
			{PageSize: -1},
			{PageSize: 1001},
			{Filter: &taskstorev1.DeadLetterFilter{Tenant: "No Name"}},
			{Filter: &taskstorev1.DeadLetterFilter{Agent: "a\x00"}},
			{Filter: &taskstorev1.DeadLetterFilter{Reason: "bad luck"}},
			{Filter: &taskstorev1.DeadLetterFilter{Since: &timestamppb.Timestamp{Seconds: -1 << 60}}},
			{Filter: &taskstorev1.DeadLetterFilter{Until: &timestamppb.Timestamp{Nanos: -1}}},
		} {
			_, err := f.store.ListDeadLetters(f.Context(), bad)
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
	},
	"a dead letter goes when its time is over, redriven or not, and no task with it": func(f *fixture) {
		f.clock.advance(-3650 * day) // so that nobody else's are old enough
		redriven, left := f.dead("redriven"), f.dead("left")
		made := f.redrive(redriven)
		at := f.clock.Now()
		f.purgeDeadLetters(at)
		require.Len(f, f.deadIDs(&taskstorev1.DeadLetterFilter{}), 2)
		n, err := f.db.Engine.PurgeDeadLetters(f.Context(), at.Add(time.Millisecond), 1)
		require.NoError(f, err)
		require.Equal(f, 1, n, "no more than it was told")
		f.purgeDeadLetters(at.Add(time.Millisecond))
		require.Empty(f, f.deadIDs(&taskstorev1.DeadLetterFilter{}))
		_, err = f.db.Engine.ReadDeadLetter(f.Context(), left)
		require.ErrorIs(f, err, engine.ErrNotFound)
		require.Equal(f, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND, f.tryRedrive(left).GetOutcome())
		for _, id := range []string{redriven, left, made} {
			f.get(id)
		}
	},
}

func timesOf(letters []*taskstorev1.DeadLetter) []int64 {
	times := make([]int64, len(letters))
	for i, l := range letters {
		times[i] = l.GetGivenUpAt().AsTime().UnixMilli()
	}
	return times
}
