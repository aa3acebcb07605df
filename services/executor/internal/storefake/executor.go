package storefake

import (
	"context"
	"time"

	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
)

const ok = taskstorev1.Refusal_REFUSAL_UNSPECIFIED

// call runs one call under the fault that is set.
func (s *Store) call(method string, size int, do func()) error {
	s.mu.Lock()
	s.calls[method]++
	s.batches[method] = append(s.batches[method], size)
	n, fault := s.calls[method], s.fault
	s.mu.Unlock()
	var err error
	after := true
	if fault != nil {
		err, after = fault(method, n)
	}
	if err != nil && !after {
		return err
	}
	s.mu.Lock()
	do()
	slow := s.answers[method]
	s.mu.Unlock()
	<-time.After(slow)
	return err
}

// ClaimTasks claims queued tasks.
func (s *Store) ClaimTasks(_ context.Context, q *taskstorev1.ClaimTasksRequest, _ ...grpc.CallOption) (*taskstorev1.ClaimTasksResponse, error) {
	answer := &taskstorev1.ClaimTasksResponse{}
	err := s.call("ClaimTasks", len(q.GetTasks()), func() {
		s.holder = q.GetHolder()
		for _, ref := range q.GetTasks() {
			result := s.claim(ref, q.GetLease().AsDuration())
			if r := s.tasks[ref.GetTaskId()]; result.GetRefusal() == taskstorev1.Refusal_REFUSAL_NOT_QUEUED && r.leased {
				result.HeldEpoch = r.epoch // all executors of a test have one holder
			}
			answer.Results = append(answer.Results, result)
		}
	})
	return answer, err
}

func (s *Store) claim(ref *taskstorev1.TaskRef, lease time.Duration) *taskstorev1.ClaimResult {
	result := &taskstorev1.ClaimResult{TaskId: ref.GetTaskId()}
	r := s.tasks[ref.GetTaskId()]
	switch {
	case r == nil:
		result.Outcome = &taskstorev1.ClaimResult_Refusal{Refusal: taskstorev1.Refusal_REFUSAL_NOT_FOUND}
	case task.Terminal(r.state()):
		result.Outcome = &taskstorev1.ClaimResult_Refusal{Refusal: taskstorev1.Refusal_REFUSAL_TERMINAL}
	case !r.queued:
		result.Outcome = &taskstorev1.ClaimResult_Refusal{Refusal: taskstorev1.Refusal_REFUSAL_NOT_QUEUED}
	default:
		if r.state() == task.Submitted {
			r.status(task.Working)
		}
		r.queued, r.leased, r.expires = false, true, time.Now().Add(lease)
		r.epoch++
		r.sequence = 0
		r.attempt++
		if r.turn.IsZero() {
			r.turn = time.Now()
		}
		result.Outcome = &taskstorev1.ClaimResult_Claim{Claim: r.claimed()}
	}
	return result
}

func (r *record) claimed() *taskstorev1.Claim {
	c := &taskstorev1.Claim{
		Task: r.task, Version: r.version, Tenant: Tenant, Owner: "anonymous", LeaseEpoch: r.epoch,
		Attempt: r.attempt, Messages: r.messages, HandledVersion: r.handled, TurnStarted: timestamppb.New(r.turn), TurnAge: durationpb.New(r.age),
	}
	return proto.CloneOf(c)
}

// held tells why a lease isn't, or no longer, the one that counts.
func (s *Store) held(ref *taskstorev1.LeaseRef) (*record, taskstorev1.Refusal) {
	r := s.tasks[ref.GetTaskId()]
	switch {
	case r == nil:
		return nil, taskstorev1.Refusal_REFUSAL_NOT_FOUND
	case task.Terminal(r.state()) && r.epoch == ref.GetLeaseEpoch():
		return nil, ended[r.state()]
	case !r.leased || r.epoch != ref.GetLeaseEpoch():
		return nil, taskstorev1.Refusal_REFUSAL_LEASE_LOST
	}
	return r, ok
}

// ended is what the holder of the last lease is told of the end of its task.
var ended = map[task.State]taskstorev1.Refusal{
	task.Canceled:  taskstorev1.Refusal_REFUSAL_CANCELED,
	task.Failed:    taskstorev1.Refusal_REFUSAL_OVERRUN,
	task.Completed: taskstorev1.Refusal_REFUSAL_TERMINAL,
	task.Rejected:  taskstorev1.Refusal_REFUSAL_TERMINAL,
}

// RenewLeases moves leases' expiry.
func (s *Store) RenewLeases(_ context.Context, q *taskstorev1.RenewLeasesRequest, _ ...grpc.CallOption) (*taskstorev1.RenewLeasesResponse, error) {
	answer := &taskstorev1.RenewLeasesResponse{}
	err := s.call("RenewLeases", len(q.GetLeases()), func() {
		for _, ref := range q.GetLeases() {
			result := &taskstorev1.RenewResult{TaskId: ref.GetTaskId()}
			r, refusal := s.held(ref)
			if result.Refusal = refusal; refusal == ok {
				r.expires = time.Now().Add(q.GetLease().AsDuration())
				result.MessageVersion = r.messages[len(r.messages)-1].GetVersion()
			}
			answer.Results = append(answer.Results, result)
		}
	})
	return answer, err
}

// ReleaseTasks queues tasks again.
func (s *Store) ReleaseTasks(_ context.Context, q *taskstorev1.ReleaseTasksRequest, _ ...grpc.CallOption) (*taskstorev1.ReleaseTasksResponse, error) {
	answer := &taskstorev1.ReleaseTasksResponse{}
	err := s.call("ReleaseTasks", len(q.GetReleases()), func() {
		for _, release := range q.GetReleases() {
			r, refusal := s.held(release.GetLease())
			if refusal == ok {
				r.leased, r.queued, r.delay = false, true, release.GetDelay().AsDuration()
				if !release.GetFailed() {
					r.attempt--
				}
			}
			answer.Results = append(answer.Results, &taskstorev1.ReleaseResult{
				TaskId: release.GetLease().GetTaskId(), Refusal: refusal,
			})
		}
	})
	return answer, err
}

// WriteEvents applies events.
func (s *Store) WriteEvents(_ context.Context, q *taskstorev1.WriteEventsRequest, _ ...grpc.CallOption) (*taskstorev1.WriteEventsResponse, error) {
	answer := &taskstorev1.WriteEventsResponse{}
	err := s.call("WriteEvents", len(q.GetWrites()), func() {
		for _, w := range q.GetWrites() {
			refusal := s.write(w)
			result := &taskstorev1.WriteResult{TaskId: w.GetLease().GetTaskId(), Refusal: refusal}
			if r := s.tasks[w.GetLease().GetTaskId()]; r != nil {
				result.Version = r.version
			}
			answer.Results = append(answer.Results, result)
		}
	})
	return answer, err
}

// Limit is the largest event that the store takes.
const Limit = 4 << 20

func (s *Store) write(w *taskstorev1.TaskWrite) taskstorev1.Refusal {
	if r := s.tasks[w.GetLease().GetTaskId()]; r != nil && r.epoch == w.GetLease().GetLeaseEpoch() && r.sequence >= w.GetSequence() {
		return ok
	}
	r, refusal := s.held(w.GetLease())
	if refusal != ok {
		return refusal
	}
	settled := task.Settled(w.GetEvents()[len(w.GetEvents())-1].GetStatusUpdate().GetStatus().GetState())
	if settled && r.messages[len(r.messages)-1].GetVersion() > w.GetHandledVersion() {
		return taskstorev1.Refusal_REFUSAL_NEWER_MESSAGE
	}
	for _, e := range w.GetEvents() {
		if proto.Size(e) > Limit {
			return taskstorev1.Refusal_REFUSAL_TOO_LARGE
		}
	}
	r.sequence = w.GetSequence()
	for _, e := range w.GetEvents() {
		r.apply(proto.CloneOf(e))
	}
	if settled {
		r.leased, r.handled = false, w.GetHandledVersion()
	}
	return ok
}
