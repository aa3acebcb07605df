package sse_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/pkg/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// serve runs a handler behind the write timeout of an ordinary server.
func serve(t *testing.T, http2 bool, handler http.HandlerFunc) *http.Response {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.WriteTimeout = 100 * time.Millisecond
	server.Config.ReadTimeout = 100 * time.Millisecond
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	res, err := server.Client().Get(server.URL)
	require.NoError(t, err)
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func bothVersions(t *testing.T, test func(t *testing.T, http2 bool)) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2.0": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, http2)
		})
	}
}

func TestStreamsOutliveTheServersTimeouts(t *testing.T) {
	t.Parallel()
	bothVersions(t, func(t *testing.T, http2 bool) {
		res := serve(t, http2, func(w http.ResponseWriter, r *http.Request) {
			s, err := sse.Start(w, time.Second)
			if err != nil {
				return
			}
			for range 3 {
				select {
				case <-time.After(120 * time.Millisecond): // the time passing is what is tested
				case <-r.Context().Done():
					return
				}
				if s.Event(sse.Event{ID: "1", Name: "n", Data: []byte(`{"a":1}`)}) != nil || s.Comment("keep-alive") != nil {
					return
				}
			}
		})
		require.Equal(t, http2, res.ProtoMajor == 2)
		require.Equal(t, "text/event-stream", res.Header.Get("Content-Type"))
		require.Equal(t, "no-cache", res.Header.Get("Cache-Control"))
		require.Equal(t, "no", res.Header.Get("X-Accel-Buffering"))
		body, err := io.ReadAll(res.Body)
		require.NoError(t, err)
		require.Equal(t, strings.Repeat("id: 1\nevent: n\ndata: {\"a\":1}\n\n: keep-alive\n\n", 3), string(body))
	})
}

func TestHeadersAreThereBeforeTheFirstEvent(t *testing.T) {
	t.Parallel()
	bothVersions(t, func(t *testing.T, http2 bool) {
		read := make(chan struct{})
		res := serve(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			if _, err := sse.Start(w, time.Second); err == nil {
				<-read
			}
		})
		require.Equal(t, http.StatusOK, res.StatusCode)
		close(read)
	})
}

func TestAReaderThatDoesNotReadEndsTheStream(t *testing.T) {
	t.Parallel()
	bothVersions(t, func(t *testing.T, http2 bool) {
		ended := make(chan error, 1)
		serve(t, http2, func(w http.ResponseWriter, _ *http.Request) {
			s, err := sse.Start(w, 50*time.Millisecond)
			for err == nil {
				err = s.Event(sse.Event{Data: []byte(strings.Repeat("x", 1<<20))})
			}
			ended <- err
		})
		select {
		case err := <-ended:
			require.Error(t, err)
		case <-time.After(10 * time.Second):
			t.Fatal("still writing")
		}
	})
}

// opaque hides what the server's writer can do, as middleware without Unwrap does.
type opaque struct{ http.ResponseWriter }

func TestNothingIsWrittenWhenDeadlinesCannotBeCleared(t *testing.T) {
	t.Parallel()
	rec := httptest.NewRecorder()
	_, err := sse.Start(opaque{rec}, time.Second)
	require.ErrorIs(t, err, errors.ErrUnsupported)
	require.Empty(t, rec.Header())
	require.Empty(t, rec.Body.String())
}

func TestLineBreaksNeverReachTheStream(t *testing.T) {
	t.Parallel()
	res := serve(t, false, func(w http.ResponseWriter, _ *http.Request) {
		s, err := sse.Start(w, time.Second)
		if err != nil {
			return
		}
		for _, err := range []error{
			s.Event(sse.Event{Data: []byte("a\nb")}),
			s.Event(sse.Event{ID: "1\r"}),
			s.Event(sse.Event{Name: "a\n"}),
			s.Comment("a\nb"),
		} {
			if !errors.Is(err, sse.ErrLineBreak) {
				return
			}
		}
		_ = s.Event(sse.Event{Data: []byte("all refused")})
	})
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	require.Equal(t, "data: all refused\n\n", string(body))
}
