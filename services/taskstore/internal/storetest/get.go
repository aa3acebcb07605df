package storetest

import (
	"fmt"
	"sync"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var getCases = map[string]func(*fixture){
	"the history length gives the newest messages in order": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		for i := range 5 {
			f.accept(f.followUp(id, fmt.Sprint(i)))
			f.emit(c, status(task.Working, fmt.Sprint("s", i)))
		}
		for n, want := range map[int32][]string{
			0: {}, 1: {"4"}, 2: {"s3", "4"}, 3: {"3", "s3", "4"},
			50: {"go", "0", "s0", "1", "s1", "2", "s2", "3", "s3", "4"}, 1 << 30: {"go", "0", "s0", "1", "s1", "2", "s2", "3", "s3", "4"},
		} {
			answer, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: f.scope, TaskId: id, HistoryLength: new(n)})
			require.NoError(f, err)
			require.Equal(f, want, history(answer.GetTask()), n)
			require.Equal(f, "s4", texts(answer.GetTask().GetStatus().GetMessage().GetParts()))
		}
		_, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: f.scope, TaskId: id, HistoryLength: proto.Int32(-5)})
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
	"without a history length the store's own cap holds": func(f *fixture) {
		c := f.running()
		var w []*taskstorev1.TaskEvent
		for i := range 60 {
			w = append(w, status(task.Working, fmt.Sprint(i)))
		}
		f.emit(c, w...)
		t, _ := f.get(c.GetTask().GetId())
		require.Len(f, t.GetHistory(), 50)
		require.Equal(f, "58", history(t)[49])
		require.Zero(f, f.release(c, false, 0))
		require.Len(f, f.claim(c.GetTask().GetId()).GetTask().GetHistory(), 60, "a handler gets all")
	},
	"a task is read as it is at one version": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		done := make(chan struct{})
		var group sync.WaitGroup
		group.Go(func() {
			defer close(done)
			f.emit(c, chunk("a", "0", false))
			for range 60 {
				f.emit(c, status(task.Working, "x"), chunk("a", "1", true))
			}
		})
		for reading := true; reading; {
			select {
			case <-done:
				reading = false
			default:
			}
			t, version := f.get(id)
			if len(t.GetArtifacts()) == 0 {
				require.LessOrEqual(f, version, c.GetVersion())
				continue
			}
			chunks := len(t.GetArtifacts()[0].GetParts())
			require.EqualValues(f, int(c.GetVersion())+2*chunks-1, version)
			require.Len(f, t.GetHistory(), min(50, max(1, chunks-1)))
		}
		group.Wait()
	},
	"versions of many tasks are compared at once": func(f *fixture) {
		a, b := f.start("go"), f.settled(task.Completed).GetTask().GetId()
		answer, err := f.store.GetVersions(f.Context(), &taskstorev1.GetVersionsRequest{Tasks: []*taskstorev1.TaskRef{
			{Tenant: f.scope.GetTenant(), TaskId: a}, {Tenant: f.scope.GetTenant(), TaskId: task.NewID()},
			{Tenant: f.scope.GetTenant(), TaskId: b}, {Tenant: f.scope.GetTenant(), TaskId: "nope"}, {Tenant: "other", TaskId: a}, {TaskId: a},
		}})
		require.NoError(f, err)
		got := map[string]string{}
		for _, v := range answer.GetTasks() {
			got[v.GetTaskId()] = fmt.Sprint(v.GetVersion(), v.GetState())
		}
		require.Equal(f, map[string]string{a: fmt.Sprint(1, task.Submitted), b: fmt.Sprint(3, task.Completed)}, got)
	},
	"the store says which agents file it serves": func(f *fixture) {
		require.Equal(f, "v1", f.store.Info().GetAgentsVersion())
		require.NoError(f, f.store.Ready(f.Context()))
	},
}
