package client

import (
	"log/slog"
	"net/http"
	"time"

	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/sse"
)

// The bindings of A2A 1.0, as cards name them.
const (
	JSONRPC  = "JSONRPC"
	HTTPJSON = "HTTP+JSON"
	GRPC     = "GRPC"
)

const (
	defaultMaxResponse = 128 << 20
	defaultIdle        = 90 * time.Second
)

// Options says how to reach an agent; the zero value works.
type Options struct {
	// Bindings are tried in this order; empty stands for the card's order.
	Bindings []string
	// Tenant is sent with each request; empty stands for the interface's own.
	Tenant string
	// Header is sent with each request, the card's included, and as metadata on
	// gRPC: credentials, for example.
	Header http.Header
	// Extensions are the URIs to activate (A2A §3.2.6).
	Extensions []string
	// HTTPClient is used for the card and the HTTP bindings. Its Timeout must be
	// zero: it would cut streams.
	HTTPClient *http.Client
	// DialOptions are for gRPC. Without any, TLS is used unless the host is a
	// loopback one.
	DialOptions []grpc.DialOption
	// Retry bounds what is tried again.
	Retry Retry
	// MaxEvent bounds one event of a stream, MaxResponse any other response, in
	// bytes; 0 stands for 16 MiB and 128 MiB.
	MaxEvent, MaxResponse int
	// Idle is how long an HTTP stream may be silent before it counts as cut, 0
	// for 90 s. Servers send a comment every few seconds.
	Idle time.Duration
	// Logger tells of retries; nil for none.
	Logger *slog.Logger

	// The card came without TLS, so gRPC is not expected to have it either.
	plaintext bool
}

// Retry bounds what is tried again after a lost answer or a cut stream. Pauses
// grow from First to Slowest and are jittered.
type Retry struct {
	// Attempts in a row without any success, the first included; 0 stands for 8.
	Attempts int
	// First and Slowest pause; 0 stands for 200 ms and 5 s.
	First, Slowest time.Duration
}

func (o Options) withDefaults() Options {
	if o.HTTPClient == nil {
		o.HTTPClient = http.DefaultClient
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	o.MaxEvent = orDefault(o.MaxEvent, sse.DefaultMaxEvent)
	o.MaxResponse = orDefault(o.MaxResponse, defaultMaxResponse)
	o.Idle = orDefault(o.Idle, defaultIdle)
	o.Retry.Attempts = orDefault(o.Retry.Attempts, 8)
	o.Retry.First = orDefault(o.Retry.First, 200*time.Millisecond)
	o.Retry.Slowest = orDefault(o.Retry.Slowest, 5*time.Second)
	return o
}

func orDefault[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}
