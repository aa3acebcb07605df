package gateway_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/sse"
	"github.com/errandhq/errand/pkg/task"
)

// impatient serves a bench by a server that gives an ordinary request little time.
func impatient(t *testing.T, b *bench, http2 bool) {
	t.Helper()
	handler, err := b.gateway.Handler(t.Context())
	require.NoError(t, err)
	server := httptest.NewUnstartedServer(handler)
	server.Config.ReadTimeout = 200 * time.Millisecond
	server.Config.WriteTimeout = 200 * time.Millisecond
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	b.http, b.base = server.Client(), server.URL
}

func TestWaitingRequestsOutliveTheServersTimeouts(t *testing.T) {
	t.Parallel()
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onJSONBindings(t, func(t *testing.T, over binding) {
				b := newBench(t)
				impatient(t, b, http2)
				b.store.queued = func(id, _ string) {
					time.AfterFunc(600*time.Millisecond, func() { b.store.emit(id, status(task.Working, ""), status(task.Completed, "")) })
				}
				stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "x"))
				require.Equal(t, []string{"task SUBMITTED", "status WORKING", "status COMPLETED"}, stream.all(t))
				require.Equal(t, task.Completed, over.call(t.Context(), b, "SendMessage", say("m2", "x")).task(t).GetStatus().GetState())
			})
		})
	}
}

// drip is a body that comes slowly.
type drip struct{ left int }

func (d *drip) Read(p []byte) (int, error) {
	if d.left--; d.left < 0 {
		return 0, io.EOF
	}
	<-time.After(50 * time.Millisecond)
	p[0] = ' '
	return 1, nil
}

func TestOrdinaryRequestsKeepTheTimeouts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	impatient(t, b, false)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.base+"/message:send", &drip{left: 100})
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("A2A-Version", "1.0")
	begin := time.Now()
	res, err := b.http.Do(r)
	if err == nil {
		require.NotEqual(t, http.StatusOK, res.StatusCode)
		res.Body.Close()
	}
	require.Less(t, time.Since(begin), 3*time.Second)
}

// opaque hides what the server's writer can do, as middleware without Unwrap does.
type opaque struct{ http.ResponseWriter }

func TestAStreamThatCouldBeCutOffIsNotBegun(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	handler, err := b.gateway.Handler(t.Context())
	require.NoError(t, err)
	for _, path := range []string{"/message:stream", "/rpc"} {
		body := say("m1", "x")
		if path == "/rpc" {
			body = envelope("SendStreamingMessage", body)
		}
		rec := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
		r.Header = http.Header{"Content-Type": {"application/json"}, "A2a-Version": {"1.0"}}
		handler.ServeHTTP(opaque{rec}, r)
		require.NotEqual(t, sse.MediaType, rec.Header().Get("Content-Type"))
	}
	require.Zero(t, b.store.writes)
}
