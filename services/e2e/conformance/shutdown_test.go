package conformance_test

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// A gateway that is told to stop lets nobody wait for its end: streams end so that
// their readers go on elsewhere, waiting sends are told to come again, and the tasks
// notice nothing.
func TestAGatewayFullOfStreamsStopsAtOnce(t *testing.T) {
	t.Parallel()
	cluster := start(t, harness.SQLite)
	e := &edge{edgePrograms().Start(t, cluster.Backend(t)), cluster}
	gate := make(chan struct{})
	text := script(t, func(context.Context, *agent.Task) error { <-gate; return nil })
	all := e.callers(t)
	sent := all[0].send(say(text, immediately))
	all[0].await(sent.GetId(), working)

	var streams []*stream
	for range 100 {
		streams = append(streams, all[1].subscribe(sent.GetId()), all[2].subscribe(sent.GetId()))
	}
	for _, s := range streams {
		s.task()
	}
	const sends = 20
	messages := make([]*a2apb.SendMessageRequest, sends)
	waits := make([]*binding.Answer, sends)
	var waiting sync.WaitGroup
	for i := range sends {
		messages[i] = say(text, inContext(sent.GetContextId()))
		waiting.Go(func() {
			answer, err := all[i%3].Call(t.Context(), binding.SendMessage, messages[i])
			if err != nil {
				t.Error(err)
				return
			}
			waits[i] = answer
		})
	}
	require.Eventually(t, func() bool {
		return int(all[0].list(&a2apb.ListTasksRequest{ContextId: sent.GetContextId()}).GetTotalSize()) == sends+1
	}, patience, 20*time.Millisecond)

	begun := time.Now()
	e.Gateway.Stop(t)
	require.Less(t, time.Since(begun), 12*time.Second, "half of the time that a process gets")
	waiting.Wait()
	for i, answer := range waits {
		require.NotNil(t, answer)
		unavailable.requireRetry(t, all[i%3].Binding, answer)
	}
	for _, s := range streams {
		_, err := s.Next()
		require.True(t, errors.Is(err, io.EOF) || a2aerr.From(err).RetryAfter() > 0, "%v", err)
	}
	close(gate)
	for i, again := range messages { // elsewhere, under the same message id
		require.Equal(t, completed, state(callers(t, cluster, probeAgent)[i%3].send(again)))
	}
	require.Equal(t, completed, state(callers(t, cluster, probeAgent)[0].await(sent.GetId(), completed)))
}
