package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// frontDialPatience is how long a gateway may take to answer a connection before
	// the next one is tried.
	frontDialPatience = time.Second
	// frontGrace is how long requests may take to end when the front closes, after
	// the gateways have ended.
	frontGrace = 2 * time.Second
	// frontPing finds HTTP/2 connections that lead nowhere.
	frontPing = 5 * time.Second
	// frontStreams is how many requests an HTTP/2 connection may carry at a time.
	frontStreams = 10_000
)

// dial opens a connection to one gateway.
type dial func(ctx context.Context) (net.Conn, error)

// front spreads requests over the gateways in turn, each to one of them.
type front struct {
	listener net.Listener
	server   *http.Server
	serving  sync.WaitGroup
	gateways *http.Transport
}

// openFront takes the address; serve follows once there are gateways.
func openFront(ctx context.Context, address string) (*front, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen for senders: %w", err)
	}
	return &front{listener: listener}, nil
}

func (f *front) addr() string { return f.listener.Addr().String() }

// serve forwards what comes over one of the protocols.
func (f *front) serve(gateways []dial, protocols *http.Protocols, logger *slog.Logger) {
	f.gateways = &http.Transport{
		Protocols: protocols, DialContext: dialByNumber(gateways), DisableCompression: true,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 30 * time.Second,
		HTTP2: &http.HTTP2Config{SendPingTimeout: frontPing, PingTimeout: frontPing},
	}
	proxy := &httputil.ReverseProxy{
		// A gateway sees what was sent.
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.URL.RawQuery = r.In.URL.RawQuery },
		Transport: &turns{count: len(gateways), next: f.gateways},
		// FlushInterval stays 0: bodies of unknown length are flushed anyway, and an
		// answer of gRPC that is headers alone must not be, or it has no trailers.
		ErrorLog:     slog.NewLogLogger(logger.Handler(), slog.LevelDebug),
		ErrorHandler: func(w http.ResponseWriter, r *http.Request, err error) { refuse(w, r, err, logger) },
	}
	f.server = &http.Server{
		Handler: proxy, Protocols: protocols, ReadHeaderTimeout: 10 * time.Second,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: frontStreams}, ErrorLog: proxy.ErrorLog,
	}
	f.serving.Go(func() { _ = f.server.Serve(f.listener) })
}

func (f *front) close() {
	if f == nil {
		return
	}
	if f.server == nil {
		_ = f.listener.Close()
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), frontGrace)
	defer cancel()
	if f.server.Shutdown(ctx) != nil {
		_ = f.server.Close()
	}
	f.serving.Wait()
	f.gateways.CloseIdleConnections()
}

// turns sends each request to the next gateway. A gateway to which there is no
// connection got nothing of the request, so the one after it may have it.
type turns struct {
	count int
	last  atomic.Uint64
	next  http.RoundTripper
}

// noConnectionError says that a gateway could not be reached.
type noConnectionError struct{ cause error }

func (e *noConnectionError) Error() string { return "no connection to a gateway: " + e.cause.Error() }
func (e *noConnectionError) Unwrap() error { return e.cause }

func unreached(err error) bool {
	_, ok := errors.AsType[*noConnectionError](err)
	return ok
}

func (t *turns) RoundTrip(r *http.Request) (*http.Response, error) {
	turn := t.last.Add(1)
	if r.Body != nil {
		// Closing it belongs to the server. A transport that has no connection would do
		// it before the next try.
		r.Body = io.NopCloser(r.Body)
	}
	var err error
	for i := range t.count {
		r.URL.Scheme = "http"
		r.URL.Host = gatewayHost((turn + uint64(i)) % uint64(t.count))
		var res *http.Response
		res, err = t.next.RoundTrip(r)
		if !unreached(err) || r.Context().Err() != nil {
			return res, err
		}
	}
	return nil, err
}

// gatewayHost stands for a gateway in the transport, which pools connections by
// host.
func gatewayHost(number uint64) string { return "gateway-" + strconv.FormatUint(number, 10) + ":80" }

func dialByNumber(gateways []dial) func(ctx context.Context, network, address string) (net.Conn, error) {
	byHost := map[string]dial{}
	for i, d := range gateways {
		byHost[gatewayHost(uint64(i))] = d
	}
	return func(ctx context.Context, _, address string) (net.Conn, error) {
		ctx, cancel := context.WithTimeout(ctx, frontDialPatience)
		defer cancel()
		conn, err := byHost[address](ctx)
		if err != nil {
			return nil, &noConnectionError{cause: err}
		}
		return conn, nil
	}
}
