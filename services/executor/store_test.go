package executor_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/executor"
	"github.com/errandhq/errand/services/internal/link"
	"github.com/errandhq/errand/services/taskstore"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// cluster is a real task store, on which a test starts executors.
type cluster struct {
	t      *testing.T
	nc     *nats.Conn
	agents *config.Agents
	conn   grpc.ClientConnInterface
	store  taskstorev1.TaskStoreServiceClient
}

func newCluster(t *testing.T, change ...func(*config.Agent)) *cluster {
	t.Helper()
	t.Parallel()
	agents, err := config.Parse(scripted.AgentsFile())
	require.NoError(t, err)
	for _, f := range change {
		f(&agents.Agents[0])
	}
	c := &cluster{t: t, nc: testkit.NATS(t), agents: agents}

	url := "sqlite:" + filepath.Join(t.TempDir(), "errand.db")
	require.NoError(t, taskstore.Migrate(t.Context(), url))
	store, err := taskstore.New(t.Context(), taskstore.Config{
		Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), DatabaseURL: url, NATS: c.nc, Agents: agents,
		CursorKey: make([]byte, 32),
	})
	require.NoError(t, err)
	memory := rpc.NewInMemory()
	server, err := link.NewServer("", memory, rpc.ServerConfig{
		Telemetry: telemetry.Disabled(), Logger: testkit.Logger(t),
	}, agents.Limits)
	require.NoError(t, err)
	store.Register(server.Registrar())
	conn, err := link.TaskStore("", memory, agents.Limits, telemetry.Disabled())
	require.NoError(t, err)
	for _, s := range []interface {
		Start(ctx context.Context) error
		Stop(ctx context.Context) error
	}{store, server} {
		require.NoError(t, s.Start(t.Context()))
		t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	}
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	c.conn, c.store = conn, taskstorev1.NewTaskStoreServiceClient(conn)
	return c
}

// executor starts an executor of the scripted agent, or of handle instead.
func (c *cluster) executor(handle agent.HandlerFunc) *executor.Service {
	c.t.Helper()
	a := scripted.New()
	if handle != nil {
		a.Handler = handle
	}
	s, err := executor.New(c.t.Context(), executor.Config{
		Logger: testkit.Logger(c.t), Telemetry: telemetry.Disabled(), Agents: c.agents, Handlers: []agent.Agent{a},
		TaskStore: c.conn, NATS: c.nc, Grace: 20 * time.Millisecond, Patience: 100 * time.Millisecond,
	})
	require.NoError(c.t, err)
	require.NoError(c.t, s.Start(c.t.Context()))
	c.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Stop(ctx)
	})
	return s
}

var scope = &taskstorev1.Scope{Tenant: "default", Agent: scripted.Name, Subject: "anonymous"}

func (c *cluster) accept(text, taskID string) (*a2apb.Task, error) {
	m := &a2apb.Message{
		MessageId: task.NewID(), TaskId: taskID, Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{agent.Text(text)},
	}
	answer, err := c.store.AcceptMessage(c.t.Context(), &taskstorev1.AcceptMessageRequest{
		Scope: scope, Message: m, Request: &eventv1.RequestInfo{Subject: "anonymous"},
		NewTaskId: task.NewID(), NewContextId: task.NewID(), Dedupe: true, Fingerprint: task.Fingerprint(m),
		WhileRunning: taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_APPEND,
	})
	return answer.GetTask(), err
}

func (c *cluster) send(text string) string {
	c.t.Helper()
	created, err := c.accept(text, "")
	require.NoError(c.t, err)
	return created.GetId()
}

func (c *cluster) get(id string) *a2apb.Task {
	answer, err := c.store.GetTask(c.t.Context(), &taskstorev1.GetTaskRequest{Scope: scope, TaskId: id})
	require.NoError(c.t, err)
	return answer.GetTask()
}

func (c *cluster) await(id string, is func(task.State) bool) *a2apb.Task {
	c.t.Helper()
	var got *a2apb.Task
	require.Eventually(c.t, func() bool {
		got = c.get(id)
		return is(got.GetStatus().GetState())
	}, patience, 10*time.Millisecond, "task %s stays %s", id, got.GetStatus().GetState())
	return got
}

// requireOneEnd reads a task's event log: versions without a hole, and one
// terminal event, the last.
func (c *cluster) requireOneEnd(id string, want task.State) []*eventv1.Event {
	c.t.Helper()
	log, err := c.store.ListEvents(c.t.Context(), &taskstorev1.ListEventsRequest{Scope: scope, TaskId: id})
	require.NoError(c.t, err)
	for i, e := range log.GetEvents() {
		require.Equal(c.t, int64(i+1), e.GetVersion())
		last := i == len(log.GetEvents())-1
		require.Equal(c.t, last, task.Terminal(e.GetStatusUpdate().GetStatus().GetState()))
	}
	require.Equal(c.t, want, log.GetEvents()[len(log.GetEvents())-1].GetStatusUpdate().GetStatus().GetState())
	return log.GetEvents()
}

func TestCluster_TasksEndAsTheirScriptSays(t *testing.T) {
	c := newCluster(t)
	c.executor(nil)
	for text, want := range map[string]task.State{
		"echo": task.Completed, "noterm": task.Failed, "panic": task.Failed, "fail": task.Failed, "late": task.Completed,
		"ask": task.InputRequired, "auth": task.AuthRequired, "big 5000000": task.Failed,
	} {
		got := c.await(c.send(text), task.Settled)
		require.Equal(t, want, got.GetStatus().GetState(), text)
	}
}

func TestCluster_ChunksAreEventsOfTheirOwnAndOneArtifact(t *testing.T) {
	c := newCluster(t)
	c.executor(nil)
	id := c.send("chunks 500")
	got := c.await(id, task.Terminal)
	require.Len(t, got.GetArtifacts(), 1)
	for i, p := range got.GetArtifacts()[0].GetParts() {
		require.Equal(t, fmt.Sprintf("chunk %d\n", i+1), p.GetText())
	}
	require.Len(t, c.requireOneEnd(id, task.Completed), 1+1+500+1, "created, working, chunks, completed")
}

func TestCluster_CancelAndCompletionRaceHasOneWinner(t *testing.T) {
	c := newCluster(t)
	c.executor(nil)
	var senders sync.WaitGroup
	for range 60 {
		senders.Go(func() {
			id := c.send("sleep 0.03")
			<-time.After(rand.N(80 * time.Millisecond))
			_, err := c.store.CancelTask(t.Context(), &taskstorev1.CancelTaskRequest{Scope: scope, TaskId: id})
			got := c.await(id, task.Terminal)
			if err == nil {
				require.Equal(t, task.Canceled, got.GetStatus().GetState())
			} else {
				require.Equal(t, codes.FailedPrecondition, status.Code(err))
				require.Equal(t, task.Completed, got.GetStatus().GetState())
			}
			c.requireOneEnd(id, got.GetStatus().GetState())
		})
	}
	senders.Wait()
}

func TestCluster_FollowUpsRunOneAtATimeAndEachIsHandedOver(t *testing.T) {
	c := newCluster(t)
	var running, most, handed atomic.Int32
	c.executor(func(ctx context.Context, t *agent.Task) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		handed.Add(int32(len(t.NewMessages())))
		if len(t.Messages()) == 1 {
			return t.AskInput(ctx)
		}
		return nil
	})
	id := c.send("first")
	c.await(id, task.Interrupted)
	var senders sync.WaitGroup
	var accepted atomic.Int32
	for i := range 20 {
		senders.Go(func() {
			if _, err := c.accept(fmt.Sprint("follow-up ", i), id); err == nil {
				accepted.Add(1)
			} else {
				require.Equal(t, codes.FailedPrecondition, status.Code(err), "the task had ended")
			}
		})
	}
	senders.Wait()
	got := c.await(id, task.Terminal)
	require.Equal(t, int32(1), most.Load())
	require.Equal(t, 1+accepted.Load(), handed.Load())
	require.Len(t, got.GetHistory(), 1+int(accepted.Load()))
	c.requireOneEnd(id, task.Completed)
}

func TestCluster_NothingIsLostBetweenAppendsMessagesAndACancel(t *testing.T) {
	c := newCluster(t)
	var emitted atomic.Int32
	c.executor(func(ctx context.Context, t *agent.Task) error {
		s := t.Stream(&a2apb.Artifact{ArtifactId: "a1"})
		for i := range 100 {
			if err := s.Send(ctx, agent.Text(fmt.Sprint(i))); err != nil {
				return err
			}
			if err := t.Flush(ctx); err != nil {
				return err
			}
			emitted.Add(1)
		}
		return nil
	})
	id := c.send("go")
	var senders sync.WaitGroup
	var accepted atomic.Int32
	for i := range 20 {
		senders.Go(func() {
			if _, err := c.accept(fmt.Sprint("more ", i), id); err == nil {
				accepted.Add(1)
			}
		})
	}
	require.Eventually(t, func() bool { return emitted.Load() > 20 }, patience, time.Millisecond)
	_, err := c.store.CancelTask(t.Context(), &taskstorev1.CancelTaskRequest{Scope: scope, TaskId: id})
	senders.Wait()
	if err != nil {
		require.Equal(t, codes.FailedPrecondition, status.Code(err))
		return
	}
	got := c.await(id, task.Terminal)
	require.Equal(t, task.Canceled, got.GetStatus().GetState())
	require.Len(t, got.GetHistory(), 1+int(accepted.Load()))
	require.GreaterOrEqual(t, len(got.GetArtifacts()[0].GetParts()), int(emitted.Load()))
	c.requireOneEnd(id, task.Canceled)
}

func TestCluster_StoppedExecutorHandsItsTasksOn(t *testing.T) {
	c := newCluster(t)
	var attempts sync.Map
	handle := func(ctx context.Context, t *agent.Task) error {
		attempts.Store(t.IdempotencyKey(), t.Attempt())
		return scripted.New().Handler.Handle(ctx, t)
	}
	first := c.executor(handle)
	var ids []string
	for range 10 {
		ids = append(ids, c.send("chunks 10 50"))
	}
	require.Eventually(t, func() bool { return len(c.get(ids[0]).GetArtifacts()) > 0 }, patience, 10*time.Millisecond)
	c.executor(handle)
	require.NoError(t, first.Stop(t.Context()))
	for _, id := range ids {
		got := c.await(id, task.Terminal)
		require.Equal(t, task.Completed, got.GetStatus().GetState())
		require.Len(t, got.GetArtifacts()[0].GetParts(), 10, "no chunk twice")
		c.requireOneEnd(id, task.Completed)
	}
	n := 0
	attempts.Range(func(_, attempt any) bool {
		n++
		require.Equal(t, 1, attempt, "a drain is no attempt")
		return true
	})
	require.Equal(t, 10, n, "a turn has one key in all its runs")
}

func TestCluster_TaskOfADeadExecutorRunsAgain(t *testing.T) {
	c := newCluster(t, func(a *config.Agent) { a.Lease = config.Duration(2 * time.Second) })
	claimed, died := make(chan string, 1), make(chan struct{})
	dead := c.executor(func(ctx context.Context, t *agent.Task) error {
		if err := t.Stream(&a2apb.Artifact{ArtifactId: "a1"}).Send(ctx, agent.Text("from the dead")); err != nil {
			return err
		}
		if err := t.Flush(ctx); err != nil {
			return err
		}
		claimed <- t.ID()
		<-died
		return nil
	})
	defer close(died)
	id := c.send("chunks 2")
	require.Equal(t, id, <-claimed)
	// A stop that may not last is as good as a crash: nothing is given back.
	over, cancel := context.WithCancel(t.Context())
	cancel()
	require.Error(t, dead.Stop(over))
	c.executor(nil)
	got := c.await(id, task.Terminal)
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Equal(t, "chunk 1\n", got.GetArtifacts()[0].GetParts()[0].GetText())
	require.Len(t, got.GetArtifacts()[0].GetParts(), 2)
	c.requireOneEnd(id, task.Completed)
}

func TestCluster_GrantResumesATask(t *testing.T) {
	c := newCluster(t)
	c.executor(nil)
	id := c.send("auth")
	asked := c.await(id, task.Settled)
	grant := asked.GetStatus().GetMessage().GetParts()[1].GetData().GetStructValue().GetFields()["grant"].GetStringValue()
	require.Error(t, agent.Resume(t.Context(), c.store, grant+"x"))
	require.NoError(t, agent.Resume(t.Context(), c.store, grant))
	require.Equal(t, task.Completed, c.await(id, task.Terminal).GetStatus().GetState())
	require.Error(t, agent.Resume(t.Context(), c.store, grant))
}
