package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

func (f *fixture) list(change func(*taskstorev1.ListTasksRequest)) (*taskstorev1.ListTasksResponse, error) {
	r := &taskstorev1.ListTasksRequest{Scope: f.scope, PageSize: 50}
	if change != nil {
		change(r)
	}
	return f.store.ListTasks(f.Context(), r)
}

func (f *fixture) listed(change func(*taskstorev1.ListTasksRequest)) []string {
	f.Helper()
	answer, err := f.list(change)
	require.NoError(f, err)
	ids := []string{}
	for _, t := range answer.GetTasks() {
		ids = append(ids, t.GetId())
	}
	require.EqualValues(f, len(ids), answer.GetTotalSize())
	return ids
}

var listCases = map[string]func(*fixture){
	"no task is an empty list": func(f *fixture) {
		answer, err := f.list(nil)
		require.NoError(f, err)
		require.Empty(f, answer.GetTasks())
		require.Empty(f, answer.GetNextPageToken())
		require.Zero(f, answer.GetTotalSize())
	},
	"the newest status comes first, then the smaller id": func(f *fixture) {
		same := []string{f.start("a"), f.start("b"), f.start("c")}
		slices.Sort(same)
		f.clock.advance(time.Millisecond)
		later := f.start("d")
		require.Equal(f, append([]string{later}, same...), f.listed(nil))
		f.clock.advance(time.Millisecond)
		f.cancel(same[1])
		require.Equal(f, []string{same[1], later, same[0], same[2]}, f.listed(nil))
	},
	"filters combine": func(f *fixture) {
		m := f.newMessage("hi")
		m.ContextId = "c1"
		first := f.accept(f.request(m)).GetTask().GetId()
		f.clock.advance(time.Second)
		m = f.newMessage("hi")
		m.ContextId = "c1"
		second := f.accept(f.request(m)).GetTask().GetId()
		f.clock.advance(time.Second)
		third := f.start("elsewhere")
		f.cancel(first)
		inC1 := func(r *taskstorev1.ListTasksRequest) { r.ContextId = "c1" }
		require.Equal(f, []string{first, second}, f.listed(inC1))
		require.Equal(f, []string{first}, f.listed(func(r *taskstorev1.ListTasksRequest) { inC1(r); r.State = task.Canceled }))
		require.Empty(f, f.listed(func(r *taskstorev1.ListTasksRequest) { r.ContextId = "unknown" }))
		require.ElementsMatch(f, []string{second, third}, f.listed(func(r *taskstorev1.ListTasksRequest) { r.State = task.Submitted }))
		require.Equal(f, []string{second}, f.listed(func(r *taskstorev1.ListTasksRequest) { inC1(r); r.State = task.Submitted }))
		owned := proto.CloneOf(f.scope)
		owned.OwnedOnly = true
		require.Len(f, f.listed(func(r *taskstorev1.ListTasksRequest) { r.Scope = owned }), 3)
		require.Equal(f, []string{first}, f.listed(func(r *taskstorev1.ListTasksRequest) { r.Scope, r.State = owned, task.Canceled }))
		require.Empty(f, f.listed(func(r *taskstorev1.ListTasksRequest) { r.Scope, r.State = owned, task.Completed }))
		owned.Subject = "bob"
		require.Empty(f, f.listed(func(r *taskstorev1.ListTasksRequest) { r.Scope = owned }))
	},
	"the lower bound of the status time is inclusive": func(f *fixture) {
		id := f.start("hi")
		at := f.clock.Now()
		since := func(t time.Time) []string {
			return f.listed(func(r *taskstorev1.ListTasksRequest) { r.StatusTimestampAfter = timestamppb.New(t) })
		}
		require.Equal(f, []string{id}, since(at))
		require.Equal(f, []string{id}, since(at.Add(-time.Nanosecond)))
		require.Empty(f, since(at.Add(time.Nanosecond)), "times are compared, not cut")
		require.Empty(f, since(at.Add(time.Millisecond)))
		_, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.StatusTimestampAfter = &timestamppb.Timestamp{Nanos: -1} })
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
	"artifacts and history come when they are asked for": func(f *fixture) {
		c := f.running()
		f.emit(c, chunk("a", "1", false), status(task.Completed, "done"))
		answer, err := f.list(nil)
		require.NoError(f, err)
		require.Nil(f, answer.GetTasks()[0].GetArtifacts())
		require.Equal(f, []string{"go"}, history(answer.GetTasks()[0]))
		answer, err = f.list(func(r *taskstorev1.ListTasksRequest) { r.IncludeArtifacts, r.HistoryLength = true, proto.Int32(0) })
		require.NoError(f, err)
		require.Equal(f, "1", texts(answer.GetTasks()[0].GetArtifacts()[0].GetParts()))
		require.Empty(f, answer.GetTasks()[0].GetHistory())
		require.Equal(f, "done", texts(answer.GetTasks()[0].GetStatus().GetMessage().GetParts()))
	},
	"pages neither skip nor repeat a task that stays": func(f *fixture) {
		stays, moves := map[string]int{}, []string{}
		for i := range 30 {
			id := f.start("hi")
			if i%3 == 0 {
				moves = append(moves, id)
			} else {
				stays[id] = 0
			}
			if i%2 == 0 {
				f.clock.advance(time.Millisecond)
			}
		}
		f.clock.advance(time.Second)
		seen := map[string]int{}
		token := ""
		for page := 0; page == 0 || token != ""; page++ {
			answer, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.PageSize, r.PageToken = 4, token })
			require.NoError(f, err)
			require.EqualValues(f, 30, answer.GetTotalSize())
			for _, t := range answer.GetTasks() {
				seen[t.GetId()]++
			}
			token = answer.GetNextPageToken()
			if page < len(moves) {
				f.cancel(moves[len(moves)-1-page])
				f.clock.advance(time.Millisecond)
			}
		}
		for id := range stays {
			require.Equal(f, 1, seen[id])
		}
		for _, id := range moves {
			require.LessOrEqual(f, seen[id], 1, "one that moved may be missed, and is not seen twice")
		}
	},
	"a page carries no more than an answer may": func(f *fixture) {
		want := []string{}
		for range 6 {
			c := f.running()
			f.emit(c, chunk("a", strings.Repeat("x", eventLimit-200), false), chunk("b", strings.Repeat("x", eventLimit-200), false))
			f.clock.advance(time.Millisecond)
			f.emit(c, status(task.Completed, ""))
			want = append([]string{c.GetTask().GetId()}, want...)
		}
		got, token, pages := []string{}, "", 0
		for ; pages == 0 || token != ""; pages++ {
			answer, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.PageToken, r.IncludeArtifacts = token, true })
			require.NoError(f, err)
			require.EqualValues(f, 6, answer.GetTotalSize())
			for _, t := range answer.GetTasks() {
				require.Len(f, t.GetArtifacts(), 2)
				got = append(got, t.GetId())
			}
			token = answer.GetNextPageToken()
		}
		require.Equal(f, want, got)
		require.Equal(f, 3, pages, "two tasks fill an answer")
	},
	"the last page says so": func(f *fixture) {
		for range 4 {
			f.start("hi")
		}
		answer, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.PageSize = 4 })
		require.NoError(f, err)
		require.Len(f, answer.GetTasks(), 4)
		require.Empty(f, answer.GetNextPageToken())
	},
	"a token belongs to its list": func(f *fixture) {
		for range 3 {
			f.start("hi")
		}
		answer, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.PageSize = 2 })
		require.NoError(f, err)
		token := answer.GetNextPageToken()
		for _, change := range []func(*taskstorev1.ListTasksRequest){
			func(r *taskstorev1.ListTasksRequest) { r.ContextId = "c" },
			func(r *taskstorev1.ListTasksRequest) { r.State = task.Working },
			func(r *taskstorev1.ListTasksRequest) { r.StatusTimestampAfter = timestamppb.Now() },
			func(r *taskstorev1.ListTasksRequest) { r.Scope = proto.CloneOf(r.GetScope()); r.Scope.Tenant += "x" },
			func(r *taskstorev1.ListTasksRequest) { r.Scope = proto.CloneOf(r.GetScope()); r.Scope.OwnedOnly = true },
			func(r *taskstorev1.ListTasksRequest) { r.PageToken = "abc" },
			func(r *taskstorev1.ListTasksRequest) { r.PageToken += "A" },
		} {
			_, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.PageToken = token; change(r) })
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
		answer, err = f.list(func(r *taskstorev1.ListTasksRequest) { r.PageSize, r.PageToken = 100, token })
		require.NoError(f, err, "another page size is the same list")
		require.Len(f, answer.GetTasks(), 1)
		require.EqualValues(f, 3, answer.GetTotalSize())
	},
	"a context id that no task can have is refused": func(f *fixture) {
		for _, id := range []string{"a\x00b", strings.Repeat("x", 257)} {
			_, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.ContextId = id })
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
	},
	"page sizes are 1 to 100": func(f *fixture) {
		for _, n := range []int32{0, -1, 101} {
			_, err := f.list(func(r *taskstorev1.ListTasksRequest) { r.PageSize = n })
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
	},
	"a count is exact up to its bound and then near the truth": func(f *fixture) {
		proto := *f.row(f.start("go"))
		var batch engine.Changes
		for i := range 1200 {
			t := proto
			t.ID, t.ContextID = task.NewID(), fmt.Sprint("c", i%2)
			batch.InsertTasks = append(batch.InsertTasks, &t)
		}
		require.NoError(f, f.change(&batch))
		q := engine.ListQuery{Scope: engine.Scope{Tenant: f.scope.GetTenant(), Agent: f.scope.GetAgent()}}
		half := q
		half.ContextID = "c1"
		for _, c := range []struct {
			query    engine.ListQuery
			atMost   int
			min, max int
		}{
			{q, 10_000, 1201, 1201},
			{q, 1201, 1201, 1201},
			{q, 1200, 1201, 100_000},
			{half, 10_000, 600, 600},
			{half, 100, 101, 100_000},
		} {
			got, err := f.db.Engine.CountTasks(f.Context(), c.query, c.atMost)
			require.NoError(f, err)
			require.GreaterOrEqual(f, got, c.min)
			require.LessOrEqual(f, got, c.max)
		}
	},
}
