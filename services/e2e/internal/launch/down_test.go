package launch_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// launcher is the cluster command as a child.
type launcher struct {
	dir, web, rpc string
	process       *exec.Cmd
}

func (l *launcher) start(t *testing.T, command string) {
	t.Helper()
	l.process = exec.Command(command, "up", "--dir", l.dir, "--bin", programs(), "--agents", agentsFile, "--http", l.web, "--grpc", l.rpc,
		"--gateways", "1", "--taskstores", "1", "--notifiers", "1", "--executors", "1")
	l.process.Stderr = t.Output()
	stdout, err := l.process.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, l.process.Start())
	seen := make([]byte, 0, 4096)
	for !strings.Contains(string(seen), "gateway-0") {
		n, err := stdout.Read(seen[len(seen):cap(seen)])
		require.NoError(t, err, "%s", seen)
		seen = seen[:len(seen)+n]
	}
}

// commandsWith are the commands on this machine that name something.
func commandsWith(t *testing.T, something string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-A", "-ww", "-o", "stat=,args=").Output()
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, something) && !strings.HasPrefix(line, "Z") {
			found = append(found, line)
		}
	}
	return found
}

func TestDownEndsWhatWasStartedAndNothingElse(t *testing.T) {
	t.Parallel()
	command := harness.Build(t, ".", "github.com/errandhq/errand/services/e2e/cmd/cluster")
	free := harness.FreeAddress
	l := &launcher{dir: filepath.Join(harness.ClusterDir(t), "cluster"), web: free(t), rpc: free(t)}
	s := newSender(t, l.web, l.rpc)

	l.start(t, command)
	before := s.requireCompletes(t, s.Bindings("")[0])
	s.requireCompletes(t, s.Bindings("")[0])
	page := s.list(t, "")
	require.Equal(t, int32(2), page.GetTotalSize())
	require.NoError(t, launch.Down(within(t), l.dir))
	require.NoError(t, l.process.Wait(), "the launcher ends well")
	require.Empty(t, commandsWith(t, l.dir))
	require.ErrorIs(t, launch.Down(within(t), l.dir), launch.ErrNotRunning)

	l.start(t, command)
	answer, err := s.Bindings("")[2].Call(within(t), binding.GetTask, &a2apb.GetTaskRequest{Id: before.GetId()})
	require.NoError(t, err)
	require.Nil(t, answer.Err, "tasks outlast the cluster")
	require.Equal(t, before.GetId(), s.list(t, page.GetNextPageToken()).GetTasks()[0].GetId(), "and so do page tokens")

	require.NoError(t, l.process.Process.Kill())
	require.Error(t, l.process.Wait())
	require.NotEmpty(t, commandsWith(t, l.dir), "its processes live on")
	_, err = launch.Start(within(t), launch.Defaults(l.dir, programs(), agentsFile))
	require.ErrorIs(t, err, launch.ErrRunning)

	bystander := exec.Command("sleep", "600")
	require.NoError(t, bystander.Start())
	gone := make(chan error, 1)
	go func() { gone <- bystander.Wait() }()
	defer func() {
		_ = bystander.Process.Kill()
		<-gone
	}()
	recordAs(t, l.dir, "nats", bystander.Process.Pid)
	require.NoError(t, launch.Down(within(t), l.dir))
	require.Empty(t, gone, "who has got a recorded id lives")
	left := commandsWith(t, l.dir)
	require.Len(t, left, 1, "the one that the record has lost")
	require.Contains(t, left[0], "nats-server")
}

// recordAs puts another process's id into the record, as if the system had given
// the id anew, and ends the one whose id it was when the test ends.
func recordAs(t *testing.T, dir, name string, pid int) {
	t.Helper()
	path := filepath.Join(dir, "cluster.json")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	var record map[string]any
	require.NoError(t, json.Unmarshal(text, &record))
	for _, p := range record["processes"].([]any) {
		if p := p.(map[string]any); p["name"] == name {
			lost := int(p["pid"].(float64))
			t.Cleanup(func() { _ = syscall.Kill(lost, syscall.SIGKILL) })
			p["pid"] = pid
		}
	}
	text, err = json.Marshal(record)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, text, 0o600))
}
