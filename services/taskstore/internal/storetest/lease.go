package storetest

import (
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

var leaseCases = map[string]func(*fixture){
	"a late executor changes nothing": func(f *fixture) {
		late := f.running()
		id := late.GetTask().GetId()
		require.Zero(f, f.release(late, false, 0))
		current := f.claim(id)
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.renew(late).GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.release(late, true, 0))
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.write(taskWrite(late, chunk("a", "A", false))).GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.write(taskWrite(late, status(task.Completed, ""))).GetRefusal())
		f.emit(current, chunk("b", "B", false), status(task.Completed, ""))
		// That the task has ended since is none of the late one's business.
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.write(taskWrite(late, chunk("a", "A", false))).GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.renew(late).GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.release(late, true, 0))
		t, _ := f.get(id)
		require.Len(f, t.GetArtifacts(), 1)
		require.Equal(f, "B", texts(t.GetArtifacts()[0].GetParts()))
	},
	"a holder is told by which end it lost its task": func(f *fixture) {
		canceled, overrun, lapsed := f.running(), f.running(), f.running()
		f.cancel(canceled.GetTask().GetId())
		f.sent.take()
		f.store.ExpireTurns(f.Context(), []string{overrun.GetTask().GetId()}, f.clock.Now().Add(time.Second))
		require.NotNil(f, f.sent.take()[0].Controls[0].Message.GetOverrun())
		for range maxAttempts - 1 {
			require.Zero(f, f.release(lapsed, true, 0))
			lapsed = f.claim(lapsed.GetTask().GetId())
		}
		f.clock.advance(lease + time.Millisecond)
		f.sent.take()
		require.Equal(f, store.GivenUp, f.expireLease(lapsed))
		require.Empty(f, f.sent.take()[0].Controls)
		for c, want := range map[*taskstorev1.Claim]taskstorev1.Refusal{
			canceled: taskstorev1.Refusal_REFUSAL_CANCELED,
			overrun:  taskstorev1.Refusal_REFUSAL_OVERRUN,
			lapsed:   taskstorev1.Refusal_REFUSAL_LEASE_LOST,
		} {
			require.Equal(f, want, f.renew(c).GetRefusal())
			require.Equal(f, want, f.write(taskWrite(c, chunk("a", "A", false))).GetRefusal())
			require.Equal(f, want, f.release(c, true, 0))
		}
	},
	"a lease belongs to its holder": func(f *fixture) {
		c := f.running()
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.writeAs("executor-2", taskWrite(c, status(task.Completed, ""))).GetRefusal())
		answer, err := f.store.RenewLeases(f.Context(), &taskstorev1.RenewLeasesRequest{
			Holder: "executor-2", Lease: durationpb.New(lease), Leases: []*taskstorev1.LeaseRef{leaseOf(c)},
		})
		require.NoError(f, err)
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, answer.GetResults()[0].GetRefusal())
		f.emit(c, status(task.Completed, ""))
	},
	"a heartbeat answers for each lease, in order": func(f *fixture) {
		held, gone := f.running(), f.running()
		f.accept(f.followUp(held.GetTask().GetId(), "more"))
		require.Zero(f, f.release(gone, false, 0))
		unknown := task.NewID()
		answer, err := f.store.RenewLeases(f.Context(), &taskstorev1.RenewLeasesRequest{
			Holder: holder, Lease: durationpb.New(lease),
			Leases: []*taskstorev1.LeaseRef{leaseOf(held), leaseOf(gone), {TaskId: unknown, LeaseEpoch: 1}, {TaskId: "nope", LeaseEpoch: 1}},
		})
		require.NoError(f, err)
		results := answer.GetResults()
		require.Len(f, results, 4)
		require.Equal(f, held.GetTask().GetId(), results[0].GetTaskId())
		require.Zero(f, results[0].GetRefusal())
		require.EqualValues(f, 3, results[0].GetMessageVersion())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, results[1].GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_FOUND, results[2].GetRefusal())
		require.Equal(f, taskstorev1.Refusal_REFUSAL_NOT_FOUND, results[3].GetRefusal())
	},
	"a heartbeat makes no version and tells nobody": func(f *fixture) {
		c := f.running()
		f.sent.take()
		require.Zero(f, f.renew(c).GetRefusal())
		_, version := f.get(c.GetTask().GetId())
		require.Equal(f, c.GetVersion(), version)
		require.Empty(f, f.sent.take())
	},
	"a drain gives the lease back and no attempt is used": func(f *fixture) {
		c := f.running()
		f.sent.take()
		require.Zero(f, f.release(c, false, 0))
		notices := f.sent.take()
		require.Len(f, notices, 1)
		require.Empty(f, notices[0].Events, "queueing changes no state")
		require.EqualValues(f, 2, notices[0].Work[0].GetEnqueueCount())
		require.EqualValues(f, 1, f.claim(c.GetTask().GetId()).GetAttempt())
	},
	"a failed claim counts, and the last one ends the task": func(f *fixture) {
		c := f.running()
		for attempt := int32(2); attempt <= maxAttempts; attempt++ {
			require.Zero(f, f.release(c, true, 0))
			c = f.claim(c.GetTask().GetId())
			require.Equal(f, attempt, c.GetAttempt())
		}
		f.sent.take()
		require.Zero(f, f.release(c, true, 0))
		t, version := f.get(c.GetTask().GetId())
		require.Equal(f, task.Failed, t.GetStatus().GetState())
		require.Equal(f, "The agent did not finish this task.", texts(t.GetStatus().GetMessage().GetParts()))
		require.Equal(f, c.GetVersion()+1, version)
		require.Empty(f, f.sent.take()[0].Work)
		f.gaveUp(t.GetId(), "max_attempts", maxAttempts)
	},
	"a delayed release tells nobody yet": func(f *fixture) {
		c := f.running()
		f.sent.take()
		require.Zero(f, f.release(c, true, time.Minute))
		require.Empty(f, f.sent.take())
	},
	"a release is done once": func(f *fixture) {
		c := f.running()
		require.Zero(f, f.release(c, false, 0))
		require.Equal(f, taskstorev1.Refusal_REFUSAL_LEASE_LOST, f.release(c, false, 0))
	},
	"leases and delays have bounds": func(f *fixture) {
		c := f.running()
		for _, bad := range []time.Duration{0, -1, time.Hour} {
			_, err := f.store.RenewLeases(f.Context(), &taskstorev1.RenewLeasesRequest{Holder: holder, Lease: durationpb.New(bad)})
			f.refused(err, a2aerr.ReasonInvalidParams)
		}
		_, err := f.store.ReleaseTasks(f.Context(), &taskstorev1.ReleaseTasksRequest{
			Holder: holder, Releases: []*taskstorev1.Release{{Lease: leaseOf(c), Delay: durationpb.New(-1)}},
		})
		f.refused(err, a2aerr.ReasonInvalidParams)
	},
}

// gaveUp requires the record that an operator finds of a task.
func (f *fixture) gaveUp(id, reason string, attempts int32) {
	f.Helper()
	l, err := f.db.Engine.ReadDeadLetter(f.Context(), id)
	require.NoError(f, err)
	require.Equal(f, reason, l.Reason)
	require.Equal(f, attempts, l.Attempts)
	require.Equal(f, f.scope.GetTenant(), l.Tenant)
	require.Equal(f, f.scope.GetAgent(), l.Agent)
}
