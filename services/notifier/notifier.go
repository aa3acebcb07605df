// Package notifier tells what happens to tasks: it brings their live events to
// the gateways, in order and without gaps, whatever NATS loses.
package notifier

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"

	notifierv1 "github.com/errandhq/errand/proto/gen/errand/notifier/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/notifier/internal/hub"
)

const (
	defaultCompare      = 4 * time.Second
	defaultStreamBuffer = 32 << 20
)

// Config is what a notifier needs. Connections are the caller's to close, after
// Stop.
type Config struct {
	Logger    *slog.Logger
	Telemetry *telemetry.Telemetry
	// TaskStore takes messages of the size of an event, at least.
	TaskStore grpc.ClientConnInterface
	NATS      *nats.Conn
	// Compare is how often all watched tasks are compared with the store, which
	// finds lost events that no later one shows; 0 stands for 4 s.
	Compare time.Duration
	// StreamBuffer bounds the events that wait for one gateway, in bytes; what is
	// beyond it is read from the store later. 0 stands for 32 MiB.
	StreamBuffer int
}

// Service is a lifecycle.Ending.
type Service struct {
	*lifecycle.Group

	hub *hub.Hub
	nc  *nats.Conn
}

// New returns a notifier that isn't running yet. Starting succeeds while the
// task store and NATS are away.
func New(_ context.Context, cfg Config) (*Service, error) {
	s := &Service{Group: lifecycle.NewGroup(cfg.Logger), nc: cfg.NATS}
	live := events.NewFeed(cfg.NATS, s.deliver)
	var err error
	s.hub, err = hub.New(hub.Config{
		Log: taskstorev1.NewTaskStoreServiceClient(cfg.TaskStore), Feed: feed{live},
		Logger: cfg.Logger, Meter: cfg.Telemetry.Meter(),
		Compare:      cmp.Or(cfg.Compare, defaultCompare),
		StreamBuffer: cmp.Or(cfg.StreamBuffer, defaultStreamBuffer),
	})
	if err != nil {
		return nil, err
	}
	s.Add("feed", live)
	s.Add("hub", s.hub)
	return s, nil
}

// Register adds the service to a gRPC server.
func (s *Service) Register(r grpc.ServiceRegistrar) {
	notifierv1.RegisterNotifierServiceServer(r, &server{hub: s.hub})
}

// Drain ends the watches of all gateways, which go on at another notifier. It
// comes before the end of the gRPC server, which waits for streams.
func (s *Service) Drain(context.Context) error {
	s.hub.Drain()
	return nil
}

// Ready fails while NATS is away: events then come late, by comparison with the
// store.
func (s *Service) Ready() error {
	if err := s.Group.Ready(); err != nil {
		return err
	}
	return natsconn.Ready(s.nc)
}
