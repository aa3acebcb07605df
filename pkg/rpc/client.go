package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/test/bufconn"

	"github.com/errandhq/errand/pkg/telemetry"
)

// memoryBuffer is what an in-memory connection holds in each direction.
const memoryBuffer = 256 << 10

// A server that was cut off holds calls up until a ping finds that out: as often
// as gRPC lets a client ping. The timeout is long for a network, not for a busy
// process.
const (
	clientPingAfter   = 10 * time.Second
	clientPingTimeout = 5 * time.Second
)

// InMemory is a link between a server and clients of the same process.
type InMemory struct{ listener *bufconn.Listener }

// NewInMemory returns a link that neither side uses yet.
func NewInMemory() *InMemory { return &InMemory{listener: bufconn.Listen(memoryBuffer)} }

// Listener is for the server.
func (m *InMemory) Listener() net.Listener { return m.listener }

// Dial connects a client; ClientConfig.InMemory takes care of it.
func (m *InMemory) Dial(ctx context.Context) (net.Conn, error) { return m.listener.DialContext(ctx) }

// ClientConfig has the settings of a connection.
type ClientConfig struct {
	// Target is host:port, of which every address is used in turn; or several of
	// them with commas between, used in turn; or a gRPC target with a scheme. Servers
	// that don't answer are passed over.
	Target string
	// InMemory, if set, is used instead of Target.
	InMemory *InMemory
	// Credentials secure the connection; nil stands for none.
	Credentials credentials.TransportCredentials
	// RetrySafe names the methods ("package.Service/Method", or "package.Service" for
	// all of a service) that may be sent twice. A call of them that ends UNAVAILABLE
	// is tried again a few times. Other calls are tried again only if they surely
	// never reached a server.
	RetrySafe []string
	// RetrySafeRequest tells of a request whose method isn't RetrySafe that it may be
	// sent twice when no answer comes; nil stands for none.
	RetrySafeRequest func(request any) bool
	// MaxCallTime bounds unary calls, which then fail as UNAVAILABLE with a RetryInfo.
	// What may be sent twice is, after half of it. 0 stands for no bound.
	MaxCallTime time.Duration
	// MaxRecvBytes and MaxSendBytes bound one message; 0 stands for gRPC's defaults.
	MaxRecvBytes, MaxSendBytes int
	Telemetry                  *telemetry.Telemetry
}

// Dial returns a connection, which connects when it is first used and whenever
// it is lost.
func Dial(cfg ClientConfig) (*grpc.ClientConn, error) {
	serviceConfig, err := json.Marshal(newServiceConfig(cfg.RetrySafe))
	if err != nil {
		return nil, fmt.Errorf("encode the gRPC service config: %w", err)
	}
	if cfg.Credentials == nil {
		cfg.Credentials = insecure.NewCredentials()
	}
	options := []grpc.DialOption{
		grpc.WithTransportCredentials(cfg.Credentials),
		grpc.WithDefaultServiceConfig(string(serviceConfig)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: clientPingAfter, Timeout: clientPingTimeout, PermitWithoutStream: true}),
		// gRPC's own maximum of 2 min would leave a service alone long after its
		// peer is back.
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
		grpc.WithStatsHandler(otelgrpc.NewClientHandler(
			otelgrpc.WithTracerProvider(cfg.Telemetry.Tracers),
			otelgrpc.WithMeterProvider(cfg.Telemetry.Meters),
			otelgrpc.WithPropagators(cfg.Telemetry.Propagator),
		)),
		grpc.WithDefaultCallOptions(callOptions(cfg)...),
	}
	if cfg.MaxCallTime > 0 {
		options = append(options, grpc.WithUnaryInterceptor(patience{limit: cfg.MaxCallTime, safe: cfg.retrySafe}.unary))
	}
	target := cfg.Target
	if cfg.InMemory != nil {
		target = "passthrough:///in-memory"
		options = append(options, grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return cfg.InMemory.Dial(ctx)
		}))
	} else {
		var resolvers []grpc.DialOption
		target, resolvers = resolve(target)
		options = append(options, resolvers...)
	}
	conn, err := grpc.NewClient(target, options...)
	if err != nil {
		return nil, fmt.Errorf("prepare a gRPC connection to %s: %w", target, err)
	}
	return conn, nil
}

// retrySafe tells of a call whether it may be sent twice; method is gRPC's full one.
func (cfg ClientConfig) retrySafe(method string, request any) bool {
	name := strings.TrimPrefix(method, "/")
	service, _, _ := strings.Cut(name, "/")
	return slices.Contains(cfg.RetrySafe, name) || slices.Contains(cfg.RetrySafe, service) ||
		cfg.RetrySafeRequest != nil && cfg.RetrySafeRequest(request)
}

func callOptions(cfg ClientConfig) []grpc.CallOption {
	var options []grpc.CallOption
	if cfg.MaxRecvBytes > 0 {
		options = append(options, grpc.MaxCallRecvMsgSize(cfg.MaxRecvBytes))
	}
	if cfg.MaxSendBytes > 0 {
		options = append(options, grpc.MaxCallSendMsgSize(cfg.MaxSendBytes))
	}
	return options
}

// serviceConfig is gRPC's service config
// (https://github.com/grpc/grpc/blob/master/doc/service_config.md).
type serviceConfig struct {
	LoadBalancing []map[string]struct{} `json:"loadBalancingConfig"`
	Methods       []methodConfig        `json:"methodConfig,omitempty"`
}

type methodConfig struct {
	Names []methodName `json:"name"`
	Retry retryPolicy  `json:"retryPolicy"`
}

type methodName struct {
	Service string `json:"service"`
	Method  string `json:"method,omitempty"`
}

type retryPolicy struct {
	MaxAttempts       int      `json:"maxAttempts"`
	InitialBackoff    string   `json:"initialBackoff"`
	MaxBackoff        string   `json:"maxBackoff"`
	BackoffMultiplier float64  `json:"backoffMultiplier"`
	RetryableCodes    []string `json:"retryableStatusCodes"`
}

func newServiceConfig(retrySafe []string) serviceConfig {
	cfg := serviceConfig{LoadBalancing: []map[string]struct{}{{"round_robin": {}}}}
	if len(retrySafe) == 0 {
		return cfg
	}
	names := make([]methodName, len(retrySafe))
	for i, name := range retrySafe {
		service, method, _ := strings.Cut(name, "/")
		names[i] = methodName{Service: service, Method: method}
	}
	cfg.Methods = []methodConfig{{Names: names, Retry: retryPolicy{
		MaxAttempts: 4, InitialBackoff: "0.1s", MaxBackoff: "1s", BackoffMultiplier: 3, RetryableCodes: []string{"UNAVAILABLE"},
	}}}
	return cfg
}
