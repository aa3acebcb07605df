package executor_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/executor"
	"github.com/errandhq/errand/services/executor/internal/storefake"
	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 20 * time.Second

// bundle is an executor on real NATS and a store that a test can disturb.
type bundle struct {
	t         *testing.T
	nc        *nats.Conn
	store     *storefake.Store
	publisher *queue.Publisher
	executor  *executor.Service
	settings  *config.Agent
}

// setup builds an executor of handle; change, if any, changes its configuration
// before it starts.
func setup(t *testing.T, handle agent.HandlerFunc, change ...func(*executor.Config, *config.Agent)) *bundle {
	t.Helper()
	t.Parallel()
	b := &bundle{t: t, nc: testkit.NATS(t), store: storefake.New()}
	b.settings = &config.Agent{
		Name: storefake.Agent, Lifecycle: config.LifecycleTask, Concurrency: 4, DirectConcurrency: 1,
		MaxRuntime: config.Duration(time.Hour), Lease: config.Duration(6 * time.Second),
	}
	b.store.SetAgentsVersion("v1")
	cfg := executor.Config{
		Handlers:  []agent.Agent{{Name: storefake.Agent, Handler: handle}},
		TaskStore: b.store.Conn(), NATS: b.nc, Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(),
		Grace: 50 * time.Millisecond, Patience: 50 * time.Millisecond,
	}
	for _, f := range change {
		f(&cfg, b.settings)
	}
	cfg.Agents = &config.Agents{Version: "v1", Limits: config.DefaultLimits(), Agents: []config.Agent{*b.settings}}
	var err error
	b.publisher, err = queue.NewPublisher(b.nc, queue.PublisherConfig{})
	require.NoError(t, err)
	b.executor, err = executor.New(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, b.executor.Start(t.Context()))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		require.NoError(t, b.executor.Stop(ctx))
	})
	return b
}

// queue makes a task and tells executors of it.
func (b *bundle) queue(text string) *taskstorev1.TaskRef {
	b.t.Helper()
	ref := b.store.Create(text)
	b.publish(ref, 1)
	return ref
}

func (b *bundle) publish(ref *taskstorev1.TaskRef, count int64) {
	b.t.Helper()
	results := b.publisher.Publish(b.t.Context(), queue.Item{Work: &executorv1.WorkItem{
		Tenant: ref.GetTenant(), Agent: storefake.Agent, TaskId: ref.GetTaskId(), Version: 1, EnqueueCount: count,
	}})
	require.NoError(b.t, results[0].Err)
}

func (b *bundle) requireState(ref *taskstorev1.TaskRef, want task.State) *a2apb.Task {
	b.t.Helper()
	var got *a2apb.Task
	require.Eventually(b.t, func() bool {
		got, _ = b.store.Task(ref)
		return got.GetStatus().GetState() == want
	}, patience, 5*time.Millisecond, "task never became %s", want)
	return got
}

func (b *bundle) requireNoWorkLeft() {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		depth, err := queue.Depth(b.t.Context(), b.nc, storefake.Agent, storefake.Tenant)
		return err == nil && depth == 0
	}, patience, 5*time.Millisecond, "work messages are left over")
}

func TestExecutor_RunsWhatIsQueuedAndAcknowledgesIt(t *testing.T) {
	b := setup(t, func(ctx context.Context, t *agent.Task) error {
		return t.Emit(ctx, &a2apb.Artifact{Parts: []*a2apb.Part{agent.Text("hello")}})
	})
	got := b.requireState(b.queue("x"), task.Completed)
	require.Len(t, got.GetArtifacts(), 1)
	b.requireNoWorkLeft()
	require.Len(t, b.store.Batches("WriteEvents"), 1, "one commit for what was emitted and the end")
}

func TestExecutor_AcknowledgesWhatItMayNotClaim(t *testing.T) {
	b := setup(t, func(context.Context, *agent.Task) error { panic("not to be called") })
	ref := b.store.Create("x")
	b.store.Cancel(ref)
	b.publish(ref, 1)
	b.publish(&taskstorev1.TaskRef{Tenant: storefake.Tenant, TaskId: "unknown"}, 1)
	b.requireNoWorkLeft()
	require.Equal(t, task.Canceled, b.requireState(ref, task.Canceled).GetStatus().GetState())
}

func TestExecutor_TaskThatIsDeliveredTwiceRunsOnce(t *testing.T) {
	var runs atomic.Int32
	b := setup(t, func(context.Context, *agent.Task) error { runs.Add(1); return nil })
	ref := b.store.Create("x")
	for count := range int64(5) {
		b.publish(ref, count)
	}
	b.requireState(ref, task.Completed)
	b.requireNoWorkLeft()
	require.Equal(t, int32(1), runs.Load())
}

func TestExecutor_WaitsForAStoreThatIsAway(t *testing.T) {
	b := setup(t, func(context.Context, *agent.Task) error { return nil })
	b.store.Fault(func(method string, call int) (error, bool) {
		if method == "ClaimTasks" && call <= 3 {
			return status.Error(codes.Unavailable, "away"), false
		}
		return nil, true
	})
	ref := b.queue("x")
	b.requireState(ref, task.Completed)
	require.Equal(t, 1, b.store.Attempt(ref), "no attempt was used up")
	b.requireNoWorkLeft()
}

func TestExecutor_ClaimsTasksOneByOneThatAreTooLargeTogether(t *testing.T) {
	b := setup(t, func(context.Context, *agent.Task) error { return nil })
	b.store.Fault(func(method string, call int) (error, bool) {
		if method == "ClaimTasks" && call == 1 {
			return status.Error(codes.ResourceExhausted, "message larger than max"), false
		}
		return nil, true
	})
	refs := make([]*taskstorev1.TaskRef, 6)
	for i := range refs {
		refs[i] = b.queue("x")
	}
	for _, ref := range refs {
		b.requireState(ref, task.Completed)
	}
	for _, n := range b.store.Batches("ClaimTasks")[1:] {
		require.Equal(t, 1, n)
	}
}

func TestExecutor_RunsNoMoreTurnsThanItHasSlots(t *testing.T) {
	var running, most atomic.Int32
	release := make(chan struct{})
	b := setup(t, func(context.Context, *agent.Task) error {
		most.Store(max(most.Load(), running.Add(1)))
		defer running.Add(-1)
		<-release
		return nil
	}, func(_ *executor.Config, a *config.Agent) { a.Concurrency = 2 })
	refs := make([]*taskstorev1.TaskRef, 6)
	for i := range refs {
		refs[i] = b.queue("x")
	}
	require.Eventually(t, func() bool { return running.Load() == 2 }, patience, 5*time.Millisecond)
	claimed := 0
	for _, n := range b.store.Batches("ClaimTasks") {
		claimed += n
	}
	require.Equal(t, 2, claimed, "it takes no more than it can run")
	close(release)
	for _, ref := range refs {
		b.requireState(ref, task.Completed)
	}
	require.Equal(t, int32(2), most.Load())
}

func TestExecutor_CancelReachesTheHandlerAtOnce(t *testing.T) {
	running, ended := make(chan struct{}), make(chan error, 1)
	b := setup(t, func(ctx context.Context, _ *agent.Task) error {
		close(running)
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return ctx.Err()
	})
	ref := b.queue("x")
	<-running
	b.store.Cancel(ref)
	holder, epoch := b.store.Holder(ref)
	reason, err := structpb.NewStruct(map[string]any{"reason": "late"})
	require.NoError(t, err)
	begun := time.Now()
	require.NoError(t, events.SendControl(t.Context(), b.nc, holder, &executorv1.Control{
		TaskId: ref.GetTaskId(), LeaseEpoch: epoch,
		Kind: &executorv1.Control_Canceled{Canceled: &executorv1.Canceled{Metadata: reason}},
	}))
	var canceled *agent.CanceledError
	require.ErrorAs(t, <-ended, &canceled)
	require.Less(t, time.Since(begun), time.Second, "long before the heartbeat")
	require.Equal(t, "late", canceled.Metadata.AsMap()["reason"])
}

func TestExecutor_MessageMeanwhileReachesTheHandlerAtOnce(t *testing.T) {
	running := make(chan struct{})
	b := setup(t, func(ctx context.Context, t *agent.Task) error {
		close(running)
		m, err := t.Next(ctx)
		if err != nil {
			return err
		}
		return t.Complete(ctx, agent.Text(agent.TextOf(m.GetMessage())))
	})
	ref := b.queue("x")
	<-running
	version := b.store.Say(ref, "more")
	holder, epoch := b.store.Holder(ref)
	require.NoError(t, events.SendControl(t.Context(), b.nc, holder, &executorv1.Control{
		TaskId: ref.GetTaskId(), LeaseEpoch: epoch,
		Kind: &executorv1.Control_MessageAppended{MessageAppended: &executorv1.MessageAppended{Version: version}},
	}))
	got := b.requireState(ref, task.Completed)
	require.Equal(t, "more", agent.TextOf(got.GetStatus().GetMessage()))
}

func TestExecutor_NextTurnWaitsForTheHandlerThatIsStillReturning(t *testing.T) {
	gate, second := make(chan struct{}), make(chan struct{})
	var returned atomic.Bool
	b := setup(t, func(ctx context.Context, t *agent.Task) error {
		if len(t.Messages()) > 1 {
			close(second)
			if !returned.Load() {
				return errors.New("the first run has not returned")
			}
			return nil
		}
		err := t.AskInput(ctx, agent.Text("which?"))
		<-gate
		returned.Store(true)
		return err
	}, func(c *executor.Config, _ *config.Agent) { c.Patience = patience })
	ref := b.queue("x")
	b.requireState(ref, task.InputRequired)
	b.store.Say(ref, "blue")
	b.publish(ref, 2)
	require.Eventually(t, func() bool {
		_, epoch := b.store.Holder(ref)
		return epoch == 2
	}, patience, time.Millisecond)
	select {
	case <-second:
	case <-time.After(50 * time.Millisecond): // long for a run that doesn't wait
	}
	close(gate)
	b.requireState(ref, task.Completed)
}

func TestExecutor_StopGivesBackWhatIsRunning(t *testing.T) {
	t.Parallel()
	for name, stubborn := range map[string]bool{"a handler that listens": false, "a handler that doesn't": true} {
		t.Run(name, func(t *testing.T) {
			running, end := make(chan struct{}), make(chan struct{})
			causes := make(chan error, 1)
			b := setup(t, func(ctx context.Context, _ *agent.Task) error {
				close(running)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				if stubborn {
					<-end
				}
				return errors.New("interrupted")
			})
			defer close(end)
			ref := b.queue("x")
			<-running
			require.NoError(t, b.executor.Stop(t.Context()))
			require.ErrorIs(t, <-causes, agent.ErrDraining)
			queued, _ := b.store.Queued(ref)
			require.True(t, queued)
			require.Zero(t, b.store.Attempt(ref), "a drain is no attempt")
		})
	}
}

func TestExecutor_StopLetsTurnsEndThatNeedNotLong(t *testing.T) {
	running, end := make(chan struct{}), make(chan struct{})
	b := setup(t, func(context.Context, *agent.Task) error {
		close(running)
		<-end
		return nil
	}, func(cfg *executor.Config, _ *config.Agent) { cfg.Grace = patience })
	ref := b.queue("x")
	<-running
	stopped := make(chan error)
	go func() { stopped <- b.executor.Stop(t.Context()) }()
	close(end)
	require.NoError(t, <-stopped)
	b.requireState(ref, task.Completed)
}

func TestExecutor_TurnThatTakesTooLongFails(t *testing.T) {
	b := setup(t, func(ctx context.Context, _ *agent.Task) error {
		<-ctx.Done()
		return ctx.Err()
	}, func(_ *executor.Config, a *config.Agent) { a.MaxRuntime = config.Duration(50 * time.Millisecond) })
	got := b.requireState(b.queue("x"), task.Failed)
	require.Contains(t, agent.TextOf(got.GetStatus().GetMessage()), "in the time allowed")
}

func TestExecutor_OnlyTheStoresClockTellsHowLongATurnHasRun(t *testing.T) {
	b := setup(t, func(ctx context.Context, _ *agent.Task) error {
		select {
		case <-ctx.Done():
		case <-time.After(300 * time.Millisecond): // long enough for a timer that is due
		}
		return context.Cause(ctx)
	})
	const apart = 2 * time.Hour // more than max_runtime
	for _, c := range []struct {
		began, age time.Duration // from now, by the executor's clock
		lost       int32
		want       task.State
	}{
		{-apart, 0, 0, task.Completed},
		{-apart, 0, 1, task.Completed},
		{apart, 0, 1, task.Completed},
		{apart, apart, 1, task.Failed},
		{0, apart, 0, task.Failed},
	} {
		ref := b.store.Create("x")
		b.store.Turn(ref, time.Now().Add(c.began), c.age, c.lost)
		b.publish(ref, 1)
		b.requireState(ref, c.want)
	}
}

func TestExecutor_HandlerThatHangsGivesItsSlotBack(t *testing.T) {
	end := make(chan struct{})
	b := setup(t, func(_ context.Context, t *agent.Task) error {
		if agent.TextOf(t.Message().GetMessage()) == "hang" {
			<-end
		}
		return nil
	}, func(_ *executor.Config, a *config.Agent) {
		a.Concurrency = 1
		a.MaxRuntime = config.Duration(50 * time.Millisecond)
	})
	defer close(end)
	b.requireState(b.queue("hang"), task.Failed)
	b.requireState(b.queue("echo"), task.Completed)
}

func TestExecutor_HandlersThatHangAreBoundedAndShow(t *testing.T) {
	end := make(chan struct{})
	var running atomic.Int32
	b := setup(t, func(_ context.Context, t *agent.Task) error {
		running.Add(1)
		defer running.Add(-1)
		if agent.TextOf(t.Message().GetMessage()) == "hang" {
			<-end
		}
		return nil
	}, func(_ *executor.Config, a *config.Agent) {
		a.Concurrency = 2
		a.MaxRuntime = config.Duration(50 * time.Millisecond)
	})
	release := sync.OnceFunc(func() { close(end) })
	defer release()
	for range 3 {
		b.requireState(b.queue("hang"), task.Failed)
	}
	b.requireState(b.queue("echo"), task.Completed)
	require.Eventually(t, func() bool { return b.executor.Ready() == nil }, patience, 5*time.Millisecond, "one slot is left")
	b.requireState(b.queue("hang"), task.Failed)
	require.Eventually(t, func() bool { return b.executor.Ready() != nil }, patience, 5*time.Millisecond)
	require.ErrorContains(t, b.executor.Ready(), "all 2 slots")
	waiting := b.queue("echo")
	require.EqualValues(t, 4, running.Load())
	require.Zero(t, b.store.Attempt(waiting))
	release()
	b.requireState(waiting, task.Completed)
	require.Eventually(t, func() bool { return b.executor.Ready() == nil && running.Load() == 0 }, patience, 5*time.Millisecond)
}

func TestExecutor_SpanOfATurnBelongsToTheSendersTrace(t *testing.T) {
	spans := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(spans))
	inHandler := make(chan trace.SpanContext, 1)
	b := setup(t, func(ctx context.Context, _ *agent.Task) error {
		inHandler <- trace.SpanContextFromContext(ctx)
		return nil
	}, func(cfg *executor.Config, _ *config.Agent) { cfg.Telemetry.Tracers = provider })
	ref := b.store.Create("x")
	b.store.Trace(ref, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	b.publish(ref, 1)
	require.Equal(t, "0af7651916cd43dd8448eb211c80319c", (<-inHandler).TraceID().String())
	require.Eventually(t, func() bool { return len(spans.Ended()) == 1 }, patience, 5*time.Millisecond)
	require.Equal(t, "b7ad6b7169203331", spans.Ended()[0].Parent().SpanID().String())
}

func TestExecutor_IsReadyWhenTheStoreHasTheSameAgentsFile(t *testing.T) {
	b := setup(t, func(context.Context, *agent.Task) error { return nil })
	require.Eventually(t, func() bool { return b.executor.Ready() == nil }, patience, 5*time.Millisecond)
	b.store.SetAgentsVersion("v2")
	require.Eventually(t, func() bool { return b.executor.Ready() != nil }, patience, 5*time.Millisecond)
	require.ErrorContains(t, b.executor.Ready(), "v2")
}

func TestExecutor_KeepsTheContractOfServices(t *testing.T) {
	t.Parallel()
	nc := testkit.NATS(t)
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		t.Helper()
		s, err := executor.New(t.Context(), executor.Config{
			Handlers: []agent.Agent{{Name: "a", Handler: agent.HandlerFunc(func(context.Context, *agent.Task) error { return nil })}},
			Agents: &config.Agents{Limits: config.DefaultLimits(), Agents: []config.Agent{{
				Name: "a", Lifecycle: config.LifecycleTask, Concurrency: 1, Lease: config.Duration(time.Second),
			}}},
			TaskStore: storefake.New().Conn(), NATS: nc, Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(),
		})
		require.NoError(t, err)
		return s
	})
}

func TestNew_RefusesCodeThatTheAgentsFileContradicts(t *testing.T) {
	t.Parallel()
	handler := agent.HandlerFunc(func(context.Context, *agent.Task) error { return nil })
	for name, cfg := range map[string]executor.Config{
		"no agents":     {Agents: &config.Agents{}},
		"unknown":       {Handlers: []agent.Agent{{Name: "a", Handler: handler}}, Agents: &config.Agents{}},
		"bad name":      {Handlers: []agent.Agent{{Name: "A", Handler: handler}}, Agents: &config.Agents{}},
		"no messages":   {Handlers: []agent.Agent{{Name: "a", Handler: handler}}, Agents: file("a", config.LifecycleMessage)},
		"no handler":    {Handlers: []agent.Agent{{Name: "a", Messages: answer}}, Agents: file("a", config.LifecycleHybrid)},
		"nothing to do": {Handlers: []agent.Agent{{Name: "a"}}, Agents: file("a", config.LifecycleTask)},
	} {
		_, err := executor.New(t.Context(), cfg)
		require.Error(t, err, name)
	}
}

func file(name string, l config.Lifecycle) *config.Agents {
	return &config.Agents{Agents: []config.Agent{{Name: name, Lifecycle: l, Lease: config.Duration(time.Second)}}}
}

var answer = agent.MessageHandlerFunc(func(_ context.Context, r *agent.Request) error {
	return r.Reply(agent.Text("you said " + agent.TextOf(r.Message())))
})

// hybrid makes the executor answer messages of skill "quick" directly.
func hybrid(cfg *executor.Config, a *config.Agent) {
	cfg.Handlers[0].Messages = answer
	cfg.Handlers[0].Router = agent.RouterFunc(func(_ context.Context, r *agent.Request) (string, error) {
		return agent.TextOf(r.Message()), nil
	})
	a.Lifecycle = config.LifecycleHybrid
	a.Skills = []config.SkillRule{
		{ID: "quick"}, {ID: "slow", TaskWhen: []config.Condition{config.SideEffect, config.Retention}},
	}
}

func (b *bundle) ask(text string) *executorv1.DirectReply {
	b.t.Helper()
	reply, err := queue.NewDirect(b.nc).Request(b.t.Context(), &executorv1.DirectRequest{
		Tenant: storefake.Tenant, Agent: storefake.Agent,
		Message: &a2apb.Message{MessageId: task.NewID(), Parts: []*a2apb.Part{agent.Text(text)}},
	})
	require.NoError(b.t, err)
	return reply
}

func TestExecutor_RuleOfTheSkillDecidesBetweenMessageAndTask(t *testing.T) {
	b := setup(t, func(context.Context, *agent.Task) error { return nil }, hybrid)
	require.Equal(t, "you said quick", agent.TextOf(b.ask("quick").GetMessage()))
	slow := b.ask("slow").GetTaskNeeded()
	require.Equal(t, "slow", slow.GetSkill())
	require.Equal(t, "side_effect, retention", slow.GetReason())
	require.Contains(t, b.ask("other").GetTaskNeeded().GetReason(), "no rule")
}

func TestExecutor_AgentOfMessagesAloneAnswersThemAll(t *testing.T) {
	b := setup(t, nil, hybrid, func(cfg *executor.Config, a *config.Agent) {
		cfg.Handlers[0].Handler = nil
		a.Lifecycle = config.LifecycleMessage
	})
	require.Equal(t, "you said slow", agent.TextOf(b.ask("slow").GetMessage()))
}
