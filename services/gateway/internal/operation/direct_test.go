package operation_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/auth"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// newTasks is a store that makes a task of every message.
type newTasks struct {
	taskstorev1.TaskStoreServiceClient
}

func (newTasks) FindMessage(
	context.Context, *taskstorev1.FindMessageRequest, ...grpc.CallOption,
) (*taskstorev1.FindMessageResponse, error) {
	return &taskstorev1.FindMessageResponse{}, nil
}

func (newTasks) AcceptMessage(
	_ context.Context, r *taskstorev1.AcceptMessageRequest, _ ...grpc.CallOption,
) (*taskstorev1.AcceptMessageResponse, error) {
	return &taskstorev1.AcceptMessageResponse{Outcome: &taskstorev1.AcceptMessageResponse_Task{
		Task: &a2apb.Task{Id: r.GetNewTaskId()},
	}, Version: 1, AcceptedVersion: 1}, nil
}

// smallMessages are executors behind a NATS server with a low limit.
type smallMessages struct{}

func (smallMessages) Request(context.Context, *executorv1.DirectRequest) (*executorv1.DirectReply, error) {
	return nil, queue.ErrTooLarge
}

const agents = `
agents:
- name: hybrid
  lifecycle: hybrid
  skills: [{id: s, task_when: []}]
  card: &card
    name: A
    description: A
    version: 1.0.0
    defaultInputModes: [text/plain]
    defaultOutputModes: [text/plain]
    skills: [{id: s, name: S, description: S, tags: [s]}]
- name: direct
  lifecycle: message
  card: *card
`

// silence is an executor that took the message and does not answer.
type silence struct{}

func (silence) Request(ctx context.Context, _ *executorv1.DirectRequest) (*executorv1.DirectReply, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// sending returns the operations above some executors, and a way to send to an agent.
func sending(t *testing.T, executors operation.Executors) (*operation.Service, func(agent string) (*a2apb.SendMessageResponse, error)) {
	t.Helper()
	file, err := config.Parse([]byte(agents))
	require.NoError(t, err)
	service := operation.New(operation.Config{
		Store: newTasks{}, Executors: executors, Limits: file.Limits, Logger: testkit.Logger(t),
	})
	gate := &admission.Gate{Authenticator: auth.Anonymous{}, Agents: file}
	ctx, err := gate.Admit(t.Context(), admission.Request{Metadata: http.Header{"A2a-Version": {"1.0"}}})
	require.NoError(t, err)
	return service, func(agent string) (*a2apb.SendMessageResponse, error) {
		return service.SendMessage(ctx, &a2apb.SendMessageRequest{
			Tenant: "self." + agent,
			Message: &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{
				{Content: &a2apb.Part_Text{Text: "x"}},
			}},
			Configuration: &a2apb.SendMessageConfiguration{ReturnImmediately: true},
		})
	}
}

func TestAStopWaitsOnlyShortlyForAnExecutorThatDoesNotAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		service, send := sending(t, silence{})
		time.AfterFunc(time.Second, service.Drain)
		begun := time.Now()
		_, err := send("direct")
		require.ErrorIs(t, err, operation.ErrStopping)
		require.Equal(t, 6*time.Second, time.Since(begun))
	})
}

func TestAMessageThatIsTooLargeToBeAskedBecomesATask(t *testing.T) {
	t.Parallel()
	_, send := sending(t, smallMessages{})
	got, err := send("hybrid")
	require.NoError(t, err)
	require.NotEmpty(t, got.GetTask().GetId())

	_, err = send("direct")
	require.Equal(t, a2aerr.ReasonTooLarge, a2aerr.From(err).Reason, "it may be no task")
}
