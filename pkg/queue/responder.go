package queue

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"

	"github.com/errandhq/errand/pkg/lifecycle"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/task"
	"github.com/errandhq/errand/pkg/telemetry"
)

// responderGroup makes each request reach one executor.
const responderGroup = "executors"

// ResponderConfig has the settings of a Responder.
type ResponderConfig struct {
	Agent string
	// Limit is how many requests are handled at the same time, at least 1; a request
	// above it is answered with KIND_BUSY at once, so that the sender can try again
	// elsewhere instead of waiting here.
	Limit int
	// Handler answers a request. Its context ends when the sender stops waiting, and
	// carries the sender's trace.
	Handler func(ctx context.Context, req *executorv1.DirectRequest) *executorv1.DirectReply
	Logger  *slog.Logger
}

// Responder answers the direct Messages of one agent. It is a lifecycle.Service.
type Responder struct {
	nc     *nats.Conn
	cfg    ResponderConfig
	logger *slog.Logger
	slots  chan struct{}

	ctx     context.Context // of all handlers; ends with a hard stop
	cancel  context.CancelCauseFunc
	running sync.WaitGroup

	mu      sync.Mutex
	sub     *nats.Subscription
	drained chan struct{}
	stopped bool
}

// NewResponder returns a responder that isn't listening yet.
func NewResponder(nc *nats.Conn, cfg ResponderConfig) (*Responder, error) {
	if !task.ValidName(cfg.Agent) {
		return nil, fmt.Errorf("agent %.*q: %w", task.MaxName, cfg.Agent, ErrBadName)
	}
	if cfg.Limit < 1 {
		return nil, fmt.Errorf("limit of direct Messages is %d, want at least 1", cfg.Limit)
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	return &Responder{
		nc: nc, cfg: cfg, logger: cfg.Logger.With(telemetry.LogAgent, cfg.Agent),
		slots: make(chan struct{}, cfg.Limit), ctx: ctx, cancel: cancel,
		drained: make(chan struct{}),
	}, nil
}

// Start begins to listen.
func (r *Responder) Start(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return lifecycle.ErrStopped
	}
	if r.sub != nil {
		return nil
	}
	sub, err := r.nc.QueueSubscribe(directPrefix+"."+r.cfg.Agent, responderGroup, r.receive)
	if err != nil {
		return fmt.Errorf("listen for direct Messages: %w", err)
	}
	sub.SetClosedHandler(func(string) { close(r.drained) })
	r.sub = sub
	return nil
}

// receive runs in the subscription's own goroutine and must not block.
func (r *Responder) receive(msg *nats.Msg) {
	select {
	case r.slots <- struct{}{}:
		r.running.Go(func() {
			defer func() { <-r.slots }()
			r.answer(msg)
		})
	default:
		r.respond(r.ctx, msg, failure(executorv1.DirectFailure_KIND_BUSY, "The agent is busy."))
	}
}

func (r *Responder) answer(msg *nats.Msg) {
	ctx := natsconn.ExtractTrace(r.ctx, msg.Header)
	if ms, err := strconv.ParseInt(msg.Header.Get(timeoutHeader), 10, 64); err == nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(ms)*time.Millisecond)
		defer cancel()
	}
	req := &executorv1.DirectRequest{}
	if err := proto.Unmarshal(msg.Data, req); err != nil || req.GetAgent() != r.cfg.Agent {
		r.logger.ErrorContext(ctx, "got a direct request that can't be read", telemetry.LogError, err)
		r.respond(ctx, msg, agentFailure())
		return
	}
	r.respond(ctx, msg, r.handle(ctx, req))
}

// handle calls the handler; a panic in it fails this request alone.
func (r *Responder) handle(ctx context.Context, req *executorv1.DirectRequest) (reply *executorv1.DirectReply) {
	defer func() {
		if p := recover(); p != nil {
			r.logger.ErrorContext(ctx, "panic while answering a direct Message",
				telemetry.LogError, fmt.Sprint(p), "stack", string(debug.Stack()))
			reply = agentFailure()
		}
	}()
	if reply = r.cfg.Handler(ctx, req); reply == nil {
		r.logger.ErrorContext(ctx, "a direct Message got no reply from its handler")
		return agentFailure()
	}
	return reply
}

func (r *Responder) respond(ctx context.Context, msg *nats.Msg, reply *executorv1.DirectReply) {
	data, err := proto.Marshal(reply)
	if err == nil {
		err = msg.Respond(data)
	}
	if errors.Is(err, nats.ErrMaxPayload) {
		r.logger.ErrorContext(ctx, "a direct reply is larger than NATS can carry", "bytes", len(data))
		r.respond(ctx, msg, failure(executorv1.DirectFailure_KIND_AGENT, "The agent's answer is too large."))
		return
	}
	if err != nil {
		r.logger.WarnContext(ctx, "cannot send a direct reply", telemetry.LogError, natsconn.Reason(err))
	}
}

// Stop takes no more requests and waits for those that are being handled; when
// ctx ends, their contexts end too.
func (r *Responder) Stop(ctx context.Context) error {
	if r.close() {
		done := make(chan struct{})
		go func() {
			defer close(done)
			<-r.drained
			r.running.Wait()
		}()
		select {
		case <-done:
		case <-ctx.Done():
			r.cancel(lifecycle.ErrStopped)
			return fmt.Errorf("wait for direct Messages to be answered: %w", context.Cause(ctx))
		}
	}
	r.cancel(lifecycle.ErrStopped)
	return nil
}

// close ends the subscription, and tells whether there was one.
func (r *Responder) close() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped {
		return r.sub != nil
	}
	r.stopped = true
	if r.sub == nil {
		return false
	}
	// It fails on a closed connection, which has ended the subscription already.
	_ = r.sub.Drain()
	return true
}

// Ready tells whether requests can come in.
func (r *Responder) Ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.stopped:
		return lifecycle.ErrStopped
	case r.sub == nil:
		return lifecycle.ErrNotRunning
	}
	return natsconn.Ready(r.nc)
}

func failure(kind executorv1.DirectFailure_Kind, text string) *executorv1.DirectReply {
	return &executorv1.DirectReply{Kind: &executorv1.DirectReply_Failure{
		Failure: &executorv1.DirectFailure{Message: text, Kind: kind},
	}}
}

func agentFailure() *executorv1.DirectReply {
	return failure(executorv1.DirectFailure_KIND_AGENT, "The agent could not answer.")
}
