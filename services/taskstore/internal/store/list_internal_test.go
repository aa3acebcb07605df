package store

import (
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func listed(id string, version int64, state a2apb.TaskState) *engine.Snapshot {
	return &engine.Snapshot{Task: &engine.Task{
		ID: id, State: state, StatusVersion: version, StatusTime: time.UnixMilli(version),
	}}
}

// A task that moves while its page is read goes to the front of the list.
func TestATaskThatMovesStaysOnTheFirstPageAlone(t *testing.T) {
	t.Parallel()
	rows := func() []*engine.Snapshot {
		return []*engine.Snapshot{listed("a", 3, task.Working), listed("b", 2, task.Working)}
	}
	moved := func() []*engine.Snapshot {
		return []*engine.Snapshot{listed("a", 3, task.Working), listed("b", 9, task.Completed)}
	}
	for name, c := range map[string]struct {
		q    engine.ListQuery
		want []string
	}{
		"first page":                         {want: []string{"b", "a"}},
		"first page of tasks in its state":   {q: engine.ListQuery{State: task.Completed}, want: []string{"b", "a"}},
		"first page of tasks as it was once": {q: engine.ListQuery{State: task.Working}, want: []string{"a"}},
		"later page":                         {q: engine.ListQuery{BeforeID: "z"}, want: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, snapshot := range inPlace(c.q, rows(), moved()) {
				got = append(got, snapshot.Task.ID)
			}
			require.Equal(t, c.want, got)
		})
	}
}
