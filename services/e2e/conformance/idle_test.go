package conformance_test

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// idleTime is how long a connection may be silent at a proxy that is more impatient
// than real ones are.
const idleTime = 3 * time.Second

// newIdleProxy leads to a server, and closes connections over which nothing comes in
// either direction for too long.
func newIdleProxy(t *testing.T, target string) (addr string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var mu sync.Mutex
	var open []net.Conn
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", target)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			silence := time.AfterFunc(idleTime, func() { _, _ = client.Close(), server.Close() })
			work.Go(func() { relay(client, server, silence) })
			work.Go(func() { relay(server, client, silence) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return listener.Addr().String()
}

func relay(from, to net.Conn, silence *time.Timer) {
	defer silence.Reset(0)
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		silence.Reset(idleTime)
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

// A stream on which nothing happens stays open through a proxy that closes what is
// silent, for clients that send no pings: the server gives signs of life.
func TestAnIdleStreamOutlivesTheIdleTimeOfAProxy(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		web, rpc := newIdleProxy(t, cluster.HTTP), newIdleProxy(t, cluster.GRPC)
		silent, err := net.Dial("tcp", rpc)
		require.NoError(t, err)
		defer func() { _ = silent.Close() }()
		client, err := binding.NewClient("http://"+web, rpc)
		require.NoError(t, err)
		defer func() { require.NoError(t, client.Close()) }()

		hold := newHold(t)
		sent := callers(t, cluster, probeAgent)[0].send(say(hold.text, immediately))
		hold.awaitRun(t)
		var streams []*stream
		for i, c := range callers(t, cluster, probeAgent) {
			c.Binding = client.Bindings(probeAgent)[i]
			s := c.subscribe(sent.GetId())
			s.task()
			streams = append(streams, s)
		}
		<-time.After(2*idleTime + time.Second)
		_, err = io.ReadAll(silent) // it sent nothing and heard nothing but the server's greeting
		require.NoError(t, err, "the proxy is one")
		hold.release()
		for _, s := range streams {
			events := s.rest()
			require.Equal(t, completed, events[len(events)-1].GetStatusUpdate().GetStatus().GetState())
		}
	})
}
