package lease_test

import (
	"context"
	"fmt"
	"log/slog"
	"syscall"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/natsconn/embedded"
	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// cancel asks for a cancel, whose answer must be at once and CANCELED, and returns
// when it was asked for.
func (c *cluster) cancel(id, reason string) time.Time {
	c.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"reason": reason})
	require.NoError(c, err)
	begun := time.Now()
	got := call[*a2apb.Task](c, binding.CancelTask, &a2apb.CancelTaskRequest{Id: id, Metadata: metadata})
	require.Equal(c, a2apb.TaskState_TASK_STATE_CANCELED, got.GetStatus().GetState())
	require.Less(c, time.Since(begun), soon)
	return begun
}

// Gateway, task store and executor are three processes.
func TestACancelReachesTheHandlerSoonWithWhatItsSenderSaid(t *testing.T) {
	t.Parallel()
	c := start(t)
	c.client = programs.edge.Start(t, c.backend).Client
	c.executors(2)
	var times []time.Duration
	for i := range setting(t, "ERRAND_CANCELS", 20) {
		id := c.send("work 60")
		c.await(id, 1, "begin")
		reason := fmt.Sprintf("number-%d", i)
		asked := c.cancel(id, reason)
		told := c.await(id, 1, "told")
		require.Equal(t, "canceled "+reason, told.detail)
		require.Equal(t, "canceled", c.await(id, 1, "complete").detail)
		times = append(times, told.at.Sub(asked))
	}
	median, longest := percentiles(t, "told of a cancel", times)
	require.Less(t, longest, soon)
	require.Less(t, median, lease/3/4, "by the control subject, and not by heartbeats")
}

func TestACancelWhoseSignalIsLostArrivesWithTheNextHeartbeat(t *testing.T) {
	t.Parallel()
	server := embedded.New(embedded.Config{DataDir: t.TempDir(), Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, server.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, server.Stop(context.Background())) })
	c := start(t, "--nats-url", server.URL())
	c.executor()
	id := c.send("work 60")
	c.await(id, 1, "begin")
	require.NoError(t, server.Stop(t.Context()))
	asked := c.cancel(id, "unheard")
	told := c.await(id, 1, "told")
	require.Equal(t, "canceled", told.detail[:len("canceled")])
	require.Less(t, told.at.Sub(asked), lease/3+soon)
}

func TestACancelEndsTheTaskWhateverBecameOfItsExecutor(t *testing.T) {
	t.Parallel()
	c := start(t)
	executors := c.executors(2)

	held := c.send("work 60")
	paused := executors[c.await(held, 1, "begin").pid]
	c.signal(paused, syscall.SIGSTOP)
	c.cancel(held, "while paused")
	c.signal(paused, syscall.SIGCONT)
	require.Equal(t, "canceled while paused", c.await(held, 1, "told").detail)

	orphan := c.send("work 60")
	dead := executors[c.await(orphan, 1, "begin").pid]
	dead.Kill(t)
	c.cancel(orphan, "while dead")
	<-time.After(lease + 2*tick) // time for a reaper that would take it up again
	events, version := c.log(orphan)
	require.EqualValues(t, 3, version, "submitted, working, canceled: %v", events)
	require.Len(t, c.seen(orphan), 1, "nobody runs it again")
	dead.Start(t)

	deaf := c.send("deaf 3")
	c.await(deaf, 1, "begin")
	c.cancel(deaf, "unheard")
	require.Equal(t, "canceled unheard", c.await(deaf, 1, "told").detail)
	require.Equal(t, "canceled", c.await(deaf, 1, "complete").detail)
	require.Equal(t, a2apb.TaskState_TASK_STATE_CANCELED, c.get(deaf).GetStatus().GetState())
	require.Empty(t, c.get(deaf).GetArtifacts())
}
