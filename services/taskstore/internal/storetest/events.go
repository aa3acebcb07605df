package storetest

import (
	"fmt"
	"strings"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func (f *fixture) log(id string, after int64, limit int32) *taskstorev1.ListEventsResponse {
	f.Helper()
	answer, err := f.store.ListEvents(f.Context(), &taskstorev1.ListEventsRequest{Scope: f.scope, TaskId: id, After: after, Limit: limit})
	require.NoError(f, err)
	return answer
}

// versions is the versions of a log's events.
func versions(l *taskstorev1.ListEventsResponse) []int64 {
	all := []int64{}
	for _, e := range l.GetEvents() {
		all = append(all, e.GetVersion())
	}
	return all
}

var eventCases = map[string]func(*fixture){
	"the log goes on after a version": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		f.emit(c, chunk("a", "1", false), chunk("a", "2", true), status(task.Completed, ""))
		require.Equal(f, []int64{1, 2, 3, 4, 5}, versions(f.log(id, 0, 0)))
		require.Equal(f, []int64{3, 4}, versions(f.log(id, 2, 2)))
		require.Empty(f, versions(f.log(id, 5, 0)))
		require.Empty(f, versions(f.log(id, 50, 0)))
		require.EqualValues(f, 5, f.log(id, 2, 2).GetVersion())
	},
	"a log longer than one read is whole": func(f *fixture) {
		c := f.running()
		var w []*taskstorev1.TaskEvent
		for i := range 200 {
			w = append(w, chunk(fmt.Sprint(i), "x", false))
		}
		version := f.emit(c, w...)
		got := versions(f.log(c.GetTask().GetId(), 0, 0))
		require.Len(f, got, int(version))
		for i, v := range got {
			require.EqualValues(f, i+1, v)
		}
		require.Len(f, versions(f.log(c.GetTask().GetId(), 10, 100)), 100)
	},
	"an answer stays within bounds and at least one event fits": func(f *fixture) {
		c := f.running()
		big := strings.Repeat("x", eventLimit-200)
		f.emit(c, chunk("a", big, false))
		f.emit(c, chunk("b", big, false))
		require.Equal(f, []int64{3}, versions(f.log(c.GetTask().GetId(), 2, 0)))
		require.Equal(f, []int64{4}, versions(f.log(c.GetTask().GetId(), 3, 0)))
	},
	"a version that the log lost is seen by its absence": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		f.emit(c, chunk("a", "1", false), chunk("a", "2", true))
		require.NoError(f, f.db.Exec(f.Context(), `DELETE FROM events WHERE version <= 2 AND task_id = '`+id+`'`))
		lost := f.log(id, 0, 0)
		require.Empty(f, lost.GetEvents())
		require.EqualValues(f, 4, lost.GetVersion())
		require.Equal(f, []int64{3, 4}, versions(f.log(id, 2, 0)))
	},
	"any agent of the tenant may be asked of at once": func(f *fixture) {
		id := f.start("go")
		scope := proto.CloneOf(f.scope)
		scope.Agent, scope.Subject = "", ""
		answer, err := f.store.ListEvents(f.Context(), &taskstorev1.ListEventsRequest{Scope: scope, TaskId: id})
		require.NoError(f, err)
		require.Len(f, answer.GetEvents(), 1)
	},
	"an unknown task has no log": func(f *fixture) {
		_, err := f.store.ListEvents(f.Context(), &taskstorev1.ListEventsRequest{Scope: f.scope, TaskId: task.NewID()})
		f.refused(err, a2aerr.ReasonTaskNotFound)
	},
}
