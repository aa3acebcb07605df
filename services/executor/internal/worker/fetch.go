package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/errandhq/errand/pkg/queue"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	claimTimeout = 20 * time.Second
	firstPause   = 250 * time.Millisecond
	lastPause    = 15 * time.Second
	// A claim of more would take long at the store, and hold up all of its tasks.
	maxClaims = 500
	// How long tasks are claimed one by one after they were too large together.
	aloneFor = time.Minute
)

var errAnswers = errors.New("the task store answered another number of tasks")

// fetch takes work until ctx ends.
func (w *Worker) fetch(ctx context.Context) error {
	failures := 0
	var alone time.Time
	for {
		free, err := w.slots.take(ctx)
		if err != nil {
			return err
		}
		most := maxClaims
		if time.Now().Before(alone) {
			most = 1
		}
		if free > most {
			w.slots.free(free - most)
			free = most
		}
		deliveries, err := w.cfg.Source.Next(ctx, free)
		w.slots.free(free - len(deliveries))
		if err != nil {
			return fmt.Errorf("wait for work of agent %s: %w", w.cfg.Agent.Name, err)
		}
		if err := w.claim(ctx, deliveries, failures); err != nil {
			failures++
			if status.Code(err) == codes.ResourceExhausted {
				alone = time.Now().Add(aloneFor)
			}
			w.cfg.Logger.WarnContext(ctx, "tasks were not claimed", "agent", w.cfg.Agent.Name,
				"tasks", len(deliveries), "failures", failures, "error", err)
			if err := pause(ctx, failures); err != nil {
				return err
			}
			continue
		}
		failures = 0
	}
}

// claim claims what was delivered and starts the turns. Each delivery has a
// slot, which its turn gives back. What the store refuses is done with: the task
// is somebody else's, or its message comes again when it is queued again.
func (w *Worker) claim(ctx context.Context, deliveries []queue.Delivery, failures int) error {
	begun := time.Now()
	results, err := w.ask(ctx, deliveries)
	if err != nil {
		for _, d := range deliveries {
			w.settle(ctx, d, d.Retry(delay(failures+1)))
		}
		w.slots.free(len(deliveries))
		return err
	}
	for _, d := range deliveries {
		claim, err := w.taken(ctx, d, results[d.Item.GetTaskId()])
		w.settle(ctx, d, err)
		if claim == nil {
			w.slots.free(1)
			continue
		}
		delete(results, d.Item.GetTaskId())
		// Now, and not in the turn: the next claim must know of this one.
		before, leave := w.running.enter(claim.GetTask().GetId(), claim.GetLeaseEpoch())
		w.turns.Go(func() {
			defer w.slots.free(1)
			if ended := w.turn(claim, begun, before, leave); ended != nil {
				w.abandoned.leave(w.life, ended, func() { w.cfg.Metrics.handlerGone(context.WithoutCancel(w.life), w.cfg.Agent.Name) })
			}
		})
	}
	return nil
}

// taken acknowledges a delivery whose claim has been decided, and gives back one
// for which the store had no time. It returns the claim, if it was granted.
func (w *Worker) taken(ctx context.Context, d queue.Delivery, r *taskstorev1.ClaimResult) (*taskstorev1.Claim, error) {
	if r.GetRefusal() == taskstorev1.Refusal_REFUSAL_UNAVAILABLE {
		return nil, d.Retry(delay(1))
	}
	if epoch := r.GetHeldEpoch(); !w.running.knows(r.GetTaskId(), epoch) {
		// The answer to the claim of that epoch got lost. Giving the task back queues it
		// anew, while waiting for the lease to lapse would cost its term and an attempt.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), claimTimeout)
		defer cancel()
		if err := w.cfg.Leases.Disown(ctx, r.GetTaskId(), epoch); err != nil {
			return nil, errors.Join(err, d.Retry(delay(1)))
		}
	}
	return r.GetClaim(), d.Ack()
}

// ask claims each task once, however often it was delivered. A stop doesn't cut
// the call: a claim whose answer nobody hears would have to lapse.
func (w *Worker) ask(ctx context.Context, deliveries []queue.Delivery) (map[string]*taskstorev1.ClaimResult, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(deliveries[0].Context(ctx)), claimTimeout)
	defer cancel()
	results := make(map[string]*taskstorev1.ClaimResult, len(deliveries))
	q := &taskstorev1.ClaimTasksRequest{
		Agent: w.cfg.Agent.Name, Holder: w.cfg.Holder, Lease: durationpb.New(w.cfg.Settings.Lease.Value()),
	}
	for _, d := range deliveries {
		id := d.Item.GetTaskId()
		if _, twice := results[id]; !twice {
			results[id] = nil
			q.Tasks = append(q.Tasks, &taskstorev1.TaskRef{Tenant: d.Item.GetTenant(), TaskId: id})
		}
	}
	answer, err := w.cfg.Store.ClaimTasks(ctx, q)
	if err == nil && len(answer.GetResults()) != len(q.GetTasks()) {
		err = errAnswers
	}
	if err != nil {
		return nil, fmt.Errorf("claim %d tasks: %w", len(q.GetTasks()), err)
	}
	for _, r := range answer.GetResults() {
		results[r.GetTaskId()] = r
	}
	return results, nil
}

// settle reports an acknowledgement that failed. It is harmless: the message
// comes again and its claim is refused.
func (w *Worker) settle(ctx context.Context, d queue.Delivery, err error) {
	if err != nil {
		w.cfg.Logger.WarnContext(ctx, "work message was not acknowledged", "error", err,
			"agent", w.cfg.Agent.Name, "tenant", d.Item.GetTenant(), "task_id", d.Item.GetTaskId())
	}
}

// delay grows with the number of failures in a row, and is spread so that
// executors don't come back together.
func delay(failures int) time.Duration {
	d := lastPause
	if failures < 7 {
		d = min(firstPause<<(failures-1), lastPause)
	}
	return d/2 + rand.N(d/2)
}

func pause(ctx context.Context, failures int) error {
	timer := time.NewTimer(delay(failures))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
