package storetest

import (
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
)

// artifacts is a task's artifacts, in order, as "id: parts".
func (f *fixture) artifacts(id string) []string {
	f.Helper()
	t, _ := f.get(id)
	var all []string
	for _, a := range t.GetArtifacts() {
		all = append(all, a.GetArtifactId()+": "+texts(a.GetParts()))
	}
	return all
}

var artifactCases = map[string]func(*fixture){
	"chunks make one artifact with its parts in order": func(f *fixture) {
		c := f.running()
		f.emit(c, chunk("a", "1", false))
		for i := 2; i <= 12; i++ {
			f.emit(c, chunk("a", fmt.Sprint(i), true))
		}
		require.Equal(f, []string{"a: 1 2 3 4 5 6 7 8 9 10 11 12"}, f.artifacts(c.GetTask().GetId()))
	},
	"an artifact that is replaced keeps its place": func(f *fixture) {
		c := f.running()
		f.emit(c, chunk("z", "1", false), chunk("b", "1", false), chunk("z", "2", true))
		f.emit(c, chunk("z", "new", false))
		f.emit(c, chunk("z", "more", true), chunk("a", "1", false))
		require.Equal(f, []string{"z: new more", "b: 1", "a: 1"}, f.artifacts(c.GetTask().GetId()), "in the order of their first chunks")
	},
	"within one write chunks append and replace the same way": func(f *fixture) {
		c := f.running()
		f.emit(c, chunk("a", "old", false), chunk("b", "b", false))
		f.emit(c, chunk("a", "x", true), chunk("n", "1", false), chunk("n", "2", true), chunk("a", "y", false), chunk("a", "z", true), chunk("n", "3", false))
		require.Equal(f, []string{"a: y z", "b: b", "n: 3"}, f.artifacts(c.GetTask().GetId()))
	},
	"chunks merge metadata and unite extensions": func(f *fixture) {
		c := f.running()
		first, _ := structpb.NewStruct(map[string]any{"a": 1, "b": 1})
		second, _ := structpb.NewStruct(map[string]any{"b": 2})
		f.emit(c, chunkOf(&a2apb.Artifact{
			ArtifactId: "a", Name: "n1", Description: "d", Parts: []*a2apb.Part{part("1")}, Metadata: first, Extensions: []string{"x"},
		}, false))
		f.emit(c, chunkOf(&a2apb.Artifact{
			ArtifactId: "a", Name: "n2", Parts: []*a2apb.Part{part("2")}, Metadata: second, Extensions: []string{"x", "y"},
		}, true))
		t, _ := f.get(c.GetTask().GetId())
		a := t.GetArtifacts()[0]
		require.Equal(f, []string{"n2", "d"}, []string{a.GetName(), a.GetDescription()})
		require.Equal(f, map[string]any{"a": 1.0, "b": 2.0}, a.GetMetadata().AsMap())
		require.Equal(f, []string{"x", "y"}, a.GetExtensions())
	},
	"what one attempt did not emit again stays from the one before": func(f *fixture) {
		c := f.running()
		f.emit(c, chunk("a", "1", false), chunk("b", "1", false), chunk("a", "2", true))
		require.Zero(f, f.release(c, true, 0))
		again := f.claim(c.GetTask().GetId())
		require.Len(f, again.GetTask().GetArtifacts(), 2)
		f.emit(again, chunk("a", "3", false), status(task.Completed, ""))
		require.Equal(f, []string{"a: 3", "b: 1"}, f.artifacts(c.GetTask().GetId()))
	},
	"what a task holds has a limit": func(f *fixture) {
		c := f.running()
		big := strings.Repeat("x", eventLimit-200)
		for i := range 4 {
			f.emit(c, chunk(fmt.Sprint(i), big, false))
		}
		require.Equal(f, taskstorev1.Refusal_REFUSAL_TOO_LARGE, f.write(taskWrite(c, chunk("5", big, false))).GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_TOO_LARGE, f.write(taskWrite(c, chunk("0", big, true))).GetRefusal())
		for range 3 {
			f.emit(c, chunk("0", big, false)) // what is replaced counts no more
		}
		f.emit(c, chunk("0", "small", false), chunk("5", "y", false), chunk("5", big[:len(big)/2], true))
	},
	"messages count too, and the last one always fits": func(f *fixture) {
		c := f.running()
		id := c.GetTask().GetId()
		// A status message has its text in its id too.
		big := strings.Repeat("x", eventLimit/2-300)
		f.emit(c, status(task.Working, big), status(task.Working, big))
		f.accept(f.followUp(id, strings.Repeat("x", eventLimit*5/8)))
		_, version := f.get(id)
		_, err := f.tryAccept(f.followUp(id, big))
		f.refused(err, a2aerr.ReasonTooLarge)
		w := taskWrite(c, status(task.Working, big))
		w.HandledVersion = version
		require.Equal(f, taskstorev1.Refusal_REFUSAL_TOO_LARGE, f.write(w).GetRefusal())
		w.Events = []*taskstorev1.TaskEvent{status(task.InputRequired, big)}
		require.Equal(f, taskstorev1.Refusal_REFUSAL_TOO_LARGE, f.write(w).GetRefusal())
		w.Events = []*taskstorev1.TaskEvent{status(task.Failed, big)}
		require.Zero(f, f.write(w).GetRefusal())
	},
	"a chunk touches the same rows however long its artifact is": func(f *fixture) {
		counting := &countingEngine{Engine: f.db.Engine}
		f.store = f.newStore(counting)
		c := f.running()
		f.emit(c, chunk("a", "0", false))
		var costs []rows
		for i := range 300 {
			f.emit(c, chunk("a", fmt.Sprint(i), true))
			costs = append(costs, counting.last())
		}
		require.Equal(f, rows{tasks: 1, artifacts: 1, updates: 1, chunks: 1, events: 1}, costs[0])
		require.Equal(f, costs[0], costs[299])
	},
}
