// Package redrive_test is an operator's day: executors die until a task is given
// up, their handler is repaired, and the task's work is run again.
package redrive_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

const (
	patience    = 30 * time.Second
	maxAttempts = 2
	// What makes an executor of the test begin tasks and not end them.
	broken = "ERRAND_E2E_BROKEN=1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// day is a cluster, and the command line of whoever sends to it or runs it.
type day struct {
	*testing.T
	errand, unfinished string
	dev                *harness.Dev
	backend            harness.Backend
}

func buildUnfinished(t *testing.T) string {
	t.Helper()
	return harness.Build(t, ".", "github.com/errandhq/errand/services/e2e/internal/unfinished")
}

func start(t *testing.T, errand, unfinished string, args ...string) *day {
	t.Helper()
	agents, err := filepath.Abs("testdata/agents.yaml")
	require.NoError(t, err)
	d := &day{T: t, errand: errand, unfinished: unfinished}
	d.dev = harness.StartDev(t, errand, append(args, "--data-dir", t.TempDir(), "--agents", agents)...)
	d.backend = harness.Backend{TaskStoreAddr: d.dev.TaskStoreAddr, NATSURL: d.dev.NATSURL, AgentsFile: agents}
	return d
}

// run runs a command and returns its output as JSON, an object a line.
func (d *day) run(args ...string) []map[string]any {
	d.Helper()
	cmd := exec.CommandContext(d.Context(), d.errand, append(args, "-o", "json")...)
	cmd.Env = append(os.Environ(), "ERRAND_URL="+d.dev.Client.URL, "ERRAND_TASKSTORE="+d.dev.TaskStoreAddr)
	var out, notes bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &notes
	require.NoError(d, cmd.Run(), "%v: %s", args, notes.String())
	objects := []map[string]any{}
	for line := range strings.Lines(out.String()) {
		object := map[string]any{}
		require.NoError(d, json.Unmarshal([]byte(line), &object), line)
		objects = append(objects, object)
	}
	return objects
}

// send starts a task and returns its id.
func (d *day) send(text string) string {
	d.Helper()
	sent := d.run("send", "--return-immediately", text)[0]["task"].(map[string]any)
	return sent["id"].(string)
}

func (d *day) get(id string) map[string]any {
	d.Helper()
	return d.run("get", id)[0]
}

// await waits until a task is in a state and its status says something.
func (d *day) await(id, state, text string) map[string]any {
	d.Helper()
	var task map[string]any
	require.Eventually(d, func() bool {
		task = d.get(id)
		return stateOf(task) == state && strings.Contains(said(task), text)
	}, patience, 50*time.Millisecond, "task %s doesn't become %s", id, state)
	return task
}

func stateOf(task map[string]any) string {
	status, _ := task["status"].(map[string]any)
	state, _ := status["state"].(string)
	return state
}

// said is the message of a task's status, as JSON.
func said(task map[string]any) string {
	status, _ := task["status"].(map[string]any)
	text, err := json.Marshal(status["message"])
	if err != nil {
		return ""
	}
	return string(text)
}

// die lets executors begin a task, and kills them, until it is given up.
func (d *day) die(id string) {
	d.Helper()
	executor := harness.StartExecutor(d, d.backend, d.unfinished, broken)
	for attempt := 1; ; attempt++ {
		d.await(id, "TASK_STATE_WORKING", "attempt "+string(rune('0'+attempt)))
		executor.Kill(d)
		if attempt == maxAttempts {
			return
		}
		executor.Start(d)
	}
}

// begun tells how often a task was begun as its first attempt.
func (d *day) begun(id string) int {
	d.Helper()
	text, err := json.Marshal(d.get(id))
	require.NoError(d, err)
	return strings.Count(string(text), "attempt 1")
}

func TestExecutorsThatAreStoppedUseNoAttemptUp(t *testing.T) {
	t.Parallel()
	d := start(t, harness.BuildErrand(t), buildUnfinished(t))
	id := d.send("water the plants")
	executor := harness.StartExecutor(t, d.backend, d.unfinished, broken)
	for stops := 1; stops <= maxAttempts+1; stops++ {
		require.Eventually(t, func() bool { return d.begun(id) == stops }, patience, 50*time.Millisecond)
		executor.Stop(t)
		executor.Start(t)
	}
	executor.Stop(t)
	harness.StartExecutor(t, d.backend, d.unfinished)
	d.await(id, "TASK_STATE_COMPLETED", "water the plants")
	require.Empty(t, d.run("admin", "dead", "list"))
}

func TestATaskWhoseExecutorsDiedIsRunAgainByAnOperator(t *testing.T) {
	t.Parallel()
	errand := harness.BuildErrand(t)
	unfinished := buildUnfinished(t)
	for name, args := range map[string][]string{"sqlite": nil, "postgres": {"--database-url", testkit.Postgres(t)}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t, errand, unfinished, args...)
			id := d.send("water the plants")
			d.die(id)
			dead := d.await(id, "TASK_STATE_FAILED", "The agent did not finish this task.")

			letters := d.run("admin", "dead", "list")
			require.Len(t, letters, 1)
			require.Equal(t, id, letters[0]["taskId"])
			require.Equal(t, "max_attempts", letters[0]["reason"])
			require.InDelta(t, maxAttempts, letters[0]["attempts"], 0)
			require.NotEmpty(t, letters[0]["lastHolder"])

			harness.StartExecutor(t, d.backend, unfinished)
			results := d.run("admin", "dead", "redrive", id)
			made := results[0]["newTaskId"].(string)
			task := d.await(made, "TASK_STATE_COMPLETED", "water the plants")
			require.Equal(t, dead["contextId"], task["contextId"])
			require.Equal(t, dead, d.get(id), "the dead task stays as it was")
			require.Empty(t, d.run("admin", "dead", "list"))

			listed := d.run("list", "--context", task["contextId"].(string))
			require.Len(t, listed, 2)
			require.Equal(t, made, listed[0]["id"])
		})
	}
}
