// Package operation implements the eleven operations of A2A (A2A §3.1), the same
// for every binding: bindings convert, this package decides.
package operation

import (
	"context"
	"log/slog"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"golang.org/x/sync/semaphore"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/services/gateway/internal/watch"
)

const (
	// watchTimeout bounds how long a watch may take to become live.
	watchTimeout = 5 * time.Second
	// retryPause is what a refused sender should wait.
	retryPause = time.Second
	// stopPatience is how long what was accepted or asked may still take to be
	// answered when the gateway stops. Asking again elsewhere is dearer than the
	// wait; but a stop must not be held up by who doesn't answer.
	stopPatience = 5 * time.Second
)

// Watcher gives the live events of tasks; watch.Watcher is one.
type Watcher interface {
	Watch(ctx context.Context, tenant, taskID string, after int64) (*watch.Subscription, error)
}

// Executors answer messages directly; queue.Direct reaches them.
type Executors interface {
	Request(ctx context.Context, request *executorv1.DirectRequest) (*executorv1.DirectReply, error)
}

// Config is what the operations work with. Calls of Store end in time by themselves.
// A write is called with a context that outlives the sender's connection: what was
// begun is finished.
type Config struct {
	Store     taskstorev1.TaskStoreServiceClient
	Watcher   Watcher
	Executors Executors
	Limits    config.Limits
	Logger    *slog.Logger
}

// Service implements the unary operations of a2apb.A2AServiceServer; the two
// streaming ones are Stream and Subscribe, since bindings need more of a stream
// than its messages.
type Service struct {
	a2apb.UnsafeA2AServiceServer

	cfg Config
	// Blocking sends that wait, and open streams.
	waits, streams *semaphore.Weighted
	// Ends when the gateway stops.
	stopping context.Context
	stop     context.CancelCauseFunc
}

// New returns the operations; they need no start.
func New(cfg Config) *Service {
	s := &Service{
		cfg:     cfg,
		waits:   semaphore.NewWeighted(int64(cfg.Limits.Waits)),
		streams: semaphore.NewWeighted(int64(cfg.Limits.Streams)),
	}
	s.stopping, s.stop = context.WithCancelCause(context.Background())
	return s
}

// ErrStopping is the cause with which streams and waits end when the gateway
// stops: the sender should go on at another one.
var ErrStopping = a2aerr.Unavailable("this server is shutting down", retryPause)

// Drain ends all streams with ErrStopping, also those to come, and before long
// the waits that nothing ended.
func (s *Service) Drain() { s.stop(ErrStopping) }

// bounded returns a context that also ends when the gateway stops, patience later.
func (s *Service) bounded(ctx context.Context, patience time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(s.stopping, func() {
		time.AfterFunc(patience, func() { cancel(context.Cause(s.stopping)) })
	})
	return ctx, func() {
		detach()
		cancel(context.Canceled)
	}
}
