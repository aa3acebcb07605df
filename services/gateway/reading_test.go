package gateway_test

import (
	"context"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/metadata"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
)

// A client that never reads must not keep its place for ever.
func TestAStreamThatIsNotReadGivesItsPlaceUp(t *testing.T) {
	t.Parallel()
	b := newBench(t, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {streams: 1, write: 200ms, ", 1)))
	id := overREST{}.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t).GetId()
	ctx := metadata.AppendToOutgoingContext(t.Context(), "a2a-version", "1.0")
	unread, err := a2apb.NewA2AServiceClient(b.grpc).SubscribeToTask(ctx, &a2apb.SubscribeToTaskRequest{Id: id})
	require.NoError(t, err)
	_, err = unread.Recv()
	require.NoError(t, err)
	b.store.emit(id, status(task.Working, ""))
	for i := range 200 {
		b.store.emit(id, artifact("a", strings.Repeat("x", 4000), i > 0))
	}
	require.Eventually(t, func() bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		_, refused := overREST{}.stream(ctx, b, "SubscribeToTask", `{"id":"`+id+`"}`)
		return refused == nil
	}, 10*time.Second, 10*time.Millisecond)

	read := 0
	for ; err == nil; read++ {
		_, err = unread.Recv()
	}
	require.Equal(t, a2aerr.ReasonUnavailable, a2aerr.From(err).Reason, "%v", err)
	require.Less(t, read, 200)
}

// Waiting for something to happen is not the same as waiting for the reader.
func TestAQuietStreamIsNotTakenForOneThatIsNotRead(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {write: 20ms, ", 1)))
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		for _, state := range []task.State{task.Working, task.Completed} {
			<-time.After(60 * time.Millisecond)
			b.store.emit(first.GetTask().GetId(), status(state, ""))
		}
		require.Equal(t, []string{"status WORKING", "status COMPLETED"}, stream.all(t))
	})
}
