package taskstore_test

import (
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/queue"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"
)

// What an agent's queue has no room for is refused and leaves nothing behind; what
// was accepted before is not touched by that.
func TestAFullQueueRefusesNewTasksAlone(t *testing.T) {
	t.Parallel()
	cfg := newConfig(t, sqliteURL(t))
	cfg.Agents.Agents[0].MaxQueued = 5
	service, client := serve(t, cfg)
	require.Eventually(t, func() bool { return service.Ready() == nil }, patience, time.Millisecond)
	request := func(taskID string) *taskstorev1.AcceptMessageRequest {
		m := &a2apb.Message{MessageId: task.NewID(), TaskId: taskID, Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "hi"}}}}
		return &taskstorev1.AcceptMessageRequest{
			Scope: scope, Message: m, NewTaskId: task.NewID(), NewContextId: task.NewID(), Dedupe: true, Fingerprint: task.Fingerprint(m),
		}
	}
	first := request("")
	created, err := client.AcceptMessage(t.Context(), first)
	require.NoError(t, err)
	accepted := 1
	var refused *taskstorev1.AcceptMessageRequest
	require.Eventually(t, func() bool {
		refused = request("")
		_, err = client.AcceptMessage(t.Context(), refused)
		if err == nil {
			accepted++
		}
		return err != nil
	}, patience, time.Millisecond)
	require.Equal(t, a2aerr.ReasonExhausted, a2aerr.From(err).Reason)
	require.Positive(t, a2aerr.From(err).RetryAfter())
	require.GreaterOrEqual(t, accepted, 5)

	again, err := client.AcceptMessage(t.Context(), first)
	require.NoError(t, err)
	require.True(t, again.GetDuplicate())
	require.Equal(t, created.GetTask().GetId(), again.GetTask().GetId())
	_, err = client.AcceptMessage(t.Context(), request(created.GetTask().GetId()))
	require.NoError(t, err, "a follow-up is part of a task that has its place")

	js, err := jetstream.New(cfg.NATS)
	require.NoError(t, err)
	work, err := js.Stream(t.Context(), queue.Stream)
	require.NoError(t, err)
	require.NoError(t, work.Purge(t.Context())) // as executors empty it
	require.Eventually(t, func() bool {
		later, err := client.AcceptMessage(t.Context(), refused)
		return err == nil && !later.GetDuplicate()
	}, patience, 10*time.Millisecond, "the refusal has left nothing behind")
}
