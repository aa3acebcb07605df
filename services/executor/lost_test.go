package executor_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// unreliable is a connection to a task store that a test disturbs.
type unreliable struct {
	grpc.ClientConnInterface

	mu sync.Mutex
	// Methods whose next calls take effect without their answers being heard, and
	// how many of them.
	lost map[string]int
	// Until when no call of a method gets through; zero for ever.
	cut map[string]<-chan struct{}
}

var errAway = status.Error(codes.Unavailable, "the task store is away")

// Invoke makes a call, or seems to.
func (u *unreliable) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	u.mu.Lock()
	lost := u.lost[method] > 0
	if lost {
		u.lost[method]--
	}
	cut := u.cut[method]
	u.mu.Unlock()
	if cut != nil {
		select {
		case <-cut:
		case <-ctx.Done():
			return errAway
		}
	}
	err := u.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	if lost {
		return errAway
	}
	return err
}

// loseAnswers makes the next n answers of a method get lost.
func (u *unreliable) loseAnswers(method string, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.lost[method] = n
}

// cutOff holds the calls of a method up until the returned function is called.
func (u *unreliable) cutOff(method string) (mend func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	cut := make(chan struct{})
	u.cut[method] = cut
	return sync.OnceFunc(func() { close(cut) })
}

func (c *cluster) disturb() *unreliable {
	u := &unreliable{ClientConnInterface: c.conn, lost: map[string]int{}, cut: map[string]<-chan struct{}{}}
	c.conn = u
	return u
}

func TestCluster_ClaimWhoseAnswerWasLostCostsNeitherALeaseNorAnAttempt(t *testing.T) {
	c := newCluster(t, func(a *config.Agent) { a.Lease = config.Duration(5 * time.Minute) })
	c.disturb().loseAnswers(taskstorev1.TaskStoreService_ClaimTasks_FullMethodName, 2)
	var runs, together atomic.Int32
	attempts := make(chan int, 10)
	c.executor(func(_ context.Context, t *agent.Task) error {
		defer together.Add(-1)
		if together.Add(1) > 1 {
			return errors.New("two runs at once")
		}
		runs.Add(1)
		attempts <- t.Attempt()
		<-time.After(300 * time.Millisecond) // time for another claim
		return nil
	})
	begun := time.Now()
	id := c.send("x")
	require.Equal(t, task.Completed, c.await(id, task.Terminal).GetStatus().GetState())
	require.Less(t, time.Since(begun), 30*time.Second, "long before the lease of a lost claim has lapsed")
	require.EqualValues(t, 1, runs.Load())
	require.Equal(t, 1, <-attempts)
	c.requireOneEnd(id, task.Completed)
}

// A message that is delivered again while its task runs must not take the running
// task for one whose claim was lost.
func TestExecutor_DeliveryOfARunningTaskDisturbsItNot(t *testing.T) {
	running, end := make(chan struct{}), make(chan struct{})
	var runs atomic.Int32
	b := setup(t, func(ctx context.Context, _ *agent.Task) error {
		runs.Add(1)
		close(running)
		select {
		case <-end:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	ref := b.queue("x")
	<-running
	b.publish(ref, 2)
	b.publish(ref, 3)
	b.requireNoWorkLeft()
	require.Empty(t, b.store.Batches("ReleaseTasks"))
	close(end)
	b.requireState(ref, task.Completed)
	require.EqualValues(t, 1, runs.Load())
}

func TestExecutor_TaskThatCannotBeGivenBackIsAskedForAgain(t *testing.T) {
	b := setup(t, func(context.Context, *agent.Task) error { return nil })
	b.store.Fault(func(method string, call int) (error, bool) {
		switch {
		case method == "ClaimTasks" && call == 1:
			return errAway, true
		case method == "ReleaseTasks" && call == 1:
			return errAway, false
		}
		return nil, true
	})
	ref := b.queue("x")
	require.Eventually(t, func() bool {
		queued, _ := b.store.Queued(ref)
		return queued && len(b.store.Batches("ReleaseTasks")) == 2
	}, patience, 5*time.Millisecond)
	b.publish(ref, 2)
	b.requireState(ref, task.Completed)
	require.Equal(t, 1, b.store.Attempt(ref))
}

func TestCluster_HeartbeatsThatAreHeldUpWithinALeaseDisturbNobody(t *testing.T) {
	c := newCluster(t, func(a *config.Agent) { a.Lease = config.Duration(12 * time.Second) })
	link := c.disturb()
	var runs atomic.Int32
	c.executor(func(ctx context.Context, _ *agent.Task) error {
		runs.Add(1)
		select {
		case <-time.After(8 * time.Second):
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	mend := link.cutOff(taskstorev1.TaskStoreService_RenewLeases_FullMethodName)
	defer mend()
	id := c.send("x")
	time.AfterFunc(5*time.Second, mend)
	require.Equal(t, task.Completed, c.await(id, task.Terminal).GetStatus().GetState())
	require.EqualValues(t, 1, runs.Load())
	c.requireOneEnd(id, task.Completed)
}

func TestCluster_HeartbeatsThatAreHeldUpForLongerThanALeaseLoseIt(t *testing.T) {
	c := newCluster(t, func(a *config.Agent) { a.Lease = config.Duration(2 * time.Second) })
	defer c.disturb().cutOff(taskstorev1.TaskStoreService_RenewLeases_FullMethodName)()
	ended := make(chan [3]error, 1)
	// Whichever executor takes the second attempt has it done before its lease ends.
	c.executor(func(ctx context.Context, t *agent.Task) error {
		first := t.Attempt() == 1
		if first {
			<-ctx.Done()
		}
		cause := context.Cause(ctx)
		part := agent.Text(fmt.Sprint("attempt ", t.Attempt()))
		wrote := errors.Join(t.Emit(ctx, &a2apb.Artifact{ArtifactId: "a", Parts: []*a2apb.Part{part}}), t.Flush(ctx))
		completed := t.Complete(ctx)
		if first {
			ended <- [3]error{cause, wrote, completed}
		}
		return completed
	})
	id := c.send("x")
	for _, err := range <-ended {
		require.ErrorIs(t, err, agent.ErrLeaseLost)
	}
	got := c.await(id, task.Terminal)
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Len(t, got.GetArtifacts(), 1)
	require.Equal(t, "attempt 2", got.GetArtifacts()[0].GetParts()[0].GetText())
	c.requireOneEnd(id, task.Completed)
}
