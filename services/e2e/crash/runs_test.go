package crash_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// run is a line of the executor that counts.
type run struct {
	what, process, task, turn, attempt string
}

func readRuns(t *testing.T, path string) []run {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var runs []run
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		require.Len(t, fields, 5, "a torn line: %q", line)
		runs = append(runs, run{fields[0], fields[1], fields[2], fields[3], fields[4]})
	}
	return runs
}

// checkRuns: each turn of each task was run, no two turns of a task at the same
// time, and none a second time but by a process that was started after the first
// one's death. (One process of that executor lives at a time.)
func checkRuns(t *testing.T, path string, promises []promise) {
	t.Helper()
	running := map[[2]string]bool{} // a task in a process
	began := map[[2]string]bool{}   // a turn in a process
	turns := map[string]map[string]bool{}
	for _, r := range readRuns(t, path) {
		task, turn := [2]string{r.process, r.task}, [2]string{r.process, r.turn}
		if r.what == "end" {
			delete(running, task)
			continue
		}
		assert.False(t, running[task], "two runs at the same time: %v", r)
		assert.False(t, began[turn], "a second run although the first was not killed: %v", r)
		running[task], began[turn] = true, true
		if turns[r.task] == nil {
			turns[r.task] = map[string]bool{}
		}
		turns[r.task][r.turn] = true
	}
	tasks := 0
	for _, p := range promises {
		if p.agent == counted && p.taskID != "" {
			tasks++
			assert.Len(t, turns[p.taskID], p.messages, "turns of task %s", p.taskID)
		}
	}
	assert.Len(t, turns, tasks, "tasks that ran")
	t.Logf("%d runs of %d tasks", len(began), tasks)
}
