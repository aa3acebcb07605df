package taskstore_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/lifecycle/lifecycletest"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/pkg/testkit"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const patience = 30 * time.Second

var scope = &taskstorev1.Scope{Tenant: "default", Agent: "echo", Subject: "anonymous"}

func newConfig(t *testing.T, url string) taskstore.Config {
	t.Helper()
	return taskstore.Config{
		Logger: testkit.Logger(t), Telemetry: telemetry.Disabled(), DatabaseURL: url, NATS: testkit.NATS(t),
		Agents: &config.Agents{
			Version: "v1", Limits: config.DefaultLimits(),
			Agents: []config.Agent{{Name: "echo", MaxAttempts: 3, Lease: config.Duration(time.Minute), MaxRuntime: config.Duration(time.Hour), InputTimeout: config.Duration(time.Hour)}},
		},
		CursorKey: []byte("0123456789abcdef"),
	}
}

func sqliteURL(t *testing.T) string {
	t.Helper()
	url := "sqlite:" + filepath.Join(t.TempDir(), "errand.db")
	require.NoError(t, taskstore.Migrate(t.Context(), url))
	return url
}

// serve runs a task store until the test ends.
func serve(t *testing.T, cfg taskstore.Config) (*taskstore.Service, taskstorev1.TaskStoreServiceClient) {
	t.Helper()
	s, err := taskstore.New(t.Context(), cfg)
	require.NoError(t, err)
	require.NoError(t, s.Start(t.Context()))
	t.Cleanup(func() { require.NoError(t, s.Stop(context.Background())) })
	return s, taskstorev1.NewTaskStoreServiceClient(testkit.GRPC(t, s.Register))
}

func accept(t *testing.T, client taskstorev1.TaskStoreServiceClient) *a2apb.Task {
	t.Helper()
	m := &a2apb.Message{MessageId: task.NewID(), Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hi"}}}}
	answer, err := client.AcceptMessage(t.Context(), &taskstorev1.AcceptMessageRequest{
		Scope: scope, Message: m, NewTaskId: task.NewID(), NewContextId: task.NewID(), Dedupe: true, Fingerprint: task.Fingerprint(m),
	})
	require.NoError(t, err)
	return answer.GetTask()
}

func TestATaskGoesThroughTheStoreOnEitherEngine(t *testing.T) {
	t.Parallel()
	for name, url := range map[string]func(t *testing.T) string{
		"sqlite": sqliteURL,
		"postgres": func(t *testing.T) string {
			t.Helper()
			return testkit.PostgresFrom(t, "taskstore service", func(url string) error { return taskstore.Migrate(context.Background(), url) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := newConfig(t, url(t))
			service, client := serve(t, cfg)
			require.Eventually(t, func() bool { return service.Ready() == nil }, patience, time.Millisecond)
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()

			consumer, err := queue.NewConsumer(cfg.NATS, queue.ConsumerConfig{Agent: "echo", Logger: cfg.Logger})
			require.NoError(t, err)
			require.NoError(t, consumer.Start(ctx))
			defer func() { require.NoError(t, consumer.Stop(context.Background())) }()

			id := accept(t, client).GetId()
			deliveries, err := consumer.Next(ctx, 1)
			require.NoError(t, err)
			require.Equal(t, id, deliveries[0].Item.GetTaskId())
			claimed, err := client.ClaimTasks(ctx, &taskstorev1.ClaimTasksRequest{
				Agent: "echo", Holder: "executor", Lease: durationpb.New(time.Minute),
				Tasks: []*taskstorev1.TaskRef{{Tenant: "default", TaskId: id}},
			})
			require.NoError(t, err)
			claim := claimed.GetResults()[0].GetClaim()
			written, err := client.WriteEvents(ctx, &taskstorev1.WriteEventsRequest{Holder: "executor", Writes: []*taskstorev1.TaskWrite{{
				Lease:          &taskstorev1.LeaseRef{TaskId: id, LeaseEpoch: claim.GetLeaseEpoch()},
				HandledVersion: 1,
				Events: []*taskstorev1.TaskEvent{{Kind: &taskstorev1.TaskEvent_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{
					Status: &a2apb.TaskStatus{State: task.Completed},
				}}}},
			}}})
			require.NoError(t, err)
			require.Zero(t, written.GetResults()[0].GetRefusal())
			got, err := client.GetTask(ctx, &taskstorev1.GetTaskRequest{Scope: scope, TaskId: id})
			require.NoError(t, err)
			require.Equal(t, task.Completed, got.GetTask().GetStatus().GetState())
			require.EqualValues(t, 3, got.GetVersion())
		})
	}
}

func TestErrorsReachTheCallerInTheirPublicForm(t *testing.T) {
	t.Parallel()
	_, client := serve(t, newConfig(t, sqliteURL(t)))
	_, err := client.GetTask(t.Context(), &taskstorev1.GetTaskRequest{Scope: scope, TaskId: "nope"})
	require.Equal(t, codes.NotFound, status.Code(err))
	require.Equal(t, a2aerr.ReasonTaskNotFound, a2aerr.From(err).Reason)

	_, err = client.UpdateContext(t.Context(), &taskstorev1.UpdateContextRequest{Scope: scope, ContextId: "c", Revision: 7})
	require.Equal(t, codes.Aborted, status.Code(err))

	existing := accept(t, client)
	m := &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hi"}}}}
	_, err = client.AcceptMessage(t.Context(), &taskstorev1.AcceptMessageRequest{
		Scope: scope, Message: m, NewTaskId: existing.GetId(), NewContextId: "c", Fingerprint: task.Fingerprint(m),
	})
	public := a2aerr.From(err)
	require.Equal(t, a2aerr.ReasonInternalError, public.Reason)
	require.NotEmpty(t, public.ID())
	require.NotContains(t, status.Convert(err).Message(), "constraint", "nobody sees insides")

	info, err := client.GetInfo(t.Context(), &taskstorev1.GetInfoRequest{})
	require.NoError(t, err)
	require.Equal(t, "v1", info.GetAgentsVersion())
}

func TestAStoreOnADatabaseWithoutItsSchemaIsNotReady(t *testing.T) {
	t.Parallel()
	url := "sqlite:" + filepath.Join(t.TempDir(), "empty.db")
	service, _ := serve(t, newConfig(t, url))
	require.Error(t, service.Ready())
	require.NoError(t, taskstore.Migrate(t.Context(), url))
	require.Eventually(t, func() bool { return service.Ready() == nil }, patience, 10*time.Millisecond)
}

func TestWrongSettingsAreRefused(t *testing.T) {
	t.Parallel()
	for _, url := range []string{"", "sqlite:", "mysql://x", "errand.db"} {
		cfg := newConfig(t, url)
		_, err := taskstore.New(t.Context(), cfg)
		require.ErrorIs(t, err, taskstore.ErrDatabaseURL)
		require.ErrorIs(t, taskstore.Migrate(t.Context(), url), taskstore.ErrDatabaseURL)
	}
	cfg := newConfig(t, sqliteURL(t))
	cfg.CursorKey = []byte("short")
	_, err := taskstore.New(t.Context(), cfg)
	require.ErrorContains(t, err, "page tokens")
}

func TestTheServiceStartsAndStopsAsServicesDo(t *testing.T) {
	t.Parallel()
	url := sqliteURL(t)
	lifecycletest.Stress(t, func(t *testing.T) lifecycle.Service {
		t.Helper()
		s, err := taskstore.New(t.Context(), newConfig(t, url))
		require.NoError(t, err)
		return s
	})
}
