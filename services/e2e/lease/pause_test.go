package lease_test

import (
	"errors"
	"io"
	"strconv"
	"syscall"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// soon is when a process that goes on again must have seen what it missed.
const soon = time.Second

func TestAPausedExecutorFindsItsTaskTakenAndChangesNothing(t *testing.T) {
	t.Parallel()
	c := start(t)
	executors := c.executors(2)
	stream, refused, err := c.client.Bindings(witness)[0].Open(t.Context(), binding.SendStreamingMessage, message("work 60 0.2"))
	require.NoError(t, err)
	require.Nil(t, refused)
	defer stream.Close()
	first, err := stream.Next()
	require.NoError(t, err)
	id := first.GetTask().GetId()

	paused := executors[c.await(id, 1, "begin").pid]
	c.signal(paused, syscall.SIGSTOP)
	second := c.await(id, 2, "begin")
	require.NotEqual(t, paused.PID(), second.pid)
	before := c.awaitState(id, a2apb.TaskState_TASK_STATE_COMPLETED)
	c.signal(paused, syscall.SIGCONT)
	resumed := time.Now()
	told := c.await(id, 1, "told")
	require.Equal(t, "lease_lost", told.detail)
	require.Less(t, told.at.Sub(resumed), soon)
	require.Equal(t, "lease_lost", c.await(id, 1, "write").detail)
	require.Equal(t, "lease_lost", c.await(id, 1, "complete").detail)

	after := c.get(id)
	require.Equal(t, strconv.Itoa(second.pid), result(after))
	require.Equal(t, before.GetStatus().GetTimestamp().AsTime(), after.GetStatus().GetTimestamp().AsTime())
	requireOneResult(t, stream, first, after)

	// What it was good for it is good for again.
	require.Equal(t, a2apb.TaskState_TASK_STATE_COMPLETED, c.awaitState(c.send("work 0"), a2apb.TaskState_TASK_STATE_COMPLETED).GetStatus().GetState())
}

// requireOneResult: a stream has told one artifact, and what it told is the task.
func requireOneResult(t *testing.T, stream *binding.Stream, first binding.Event, task *a2apb.Task) {
	t.Helper()
	events, artifacts := []binding.Event{first}, 0
	for {
		e, err := stream.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		events = append(events, e)
		if e.GetArtifactUpdate() != nil {
			artifacts++
		}
	}
	require.Equal(t, 1, artifacts)
	told, err := binding.Replay(events)
	require.NoError(t, err)
	require.NoError(t, binding.Compare(told, task))
}

// The only executor is paused, and claims its own task anew while the first run of
// it, which doesn't listen, still goes on.
func TestAnExecutorThatClaimsItsOwnTaskAnewFencesItsFirstRun(t *testing.T) {
	t.Parallel()
	c := start(t)
	only := c.executor()
	id := c.send("deaf 16 0.1")
	c.await(id, 1, "begin")
	c.signal(only, syscall.SIGSTOP)
	<-time.After(2 * lease)
	c.signal(only, syscall.SIGCONT)
	require.Equal(t, "lease_lost", c.await(id, 1, "told").detail)
	second := c.await(id, 2, "complete")
	require.Equal(t, "<nil>", second.detail)
	_, version := c.log(id)
	late := c.await(id, 1, "complete")
	require.True(t, late.at.After(second.at))
	require.Contains(t, []string{"lease_lost", "ended"}, late.detail)
	require.Contains(t, []string{"lease_lost", "ended"}, c.await(id, 1, "write").detail)
	_, now := c.log(id)
	require.Equal(t, version, now)
	require.Equal(t, a2apb.TaskState_TASK_STATE_COMPLETED, c.get(id).GetStatus().GetState())
}
