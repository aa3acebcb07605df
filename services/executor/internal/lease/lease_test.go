package lease_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/task"
	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/executor/internal/lease"
	"github.com/errandhq/errand/services/executor/internal/storefake"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const duration = 15 * time.Second

// bundle is a manager with one lease, in a bubble of its own time.
type bundle struct {
	t       *testing.T
	store   *storefake.Store
	manager *lease.Manager
	ref     *taskstorev1.TaskRef
	claim   *taskstorev1.Claim
	lease   *lease.Lease
}

func inBubble(t *testing.T, test func(t *testing.T, b *bundle)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bundle{t: t, store: storefake.New()}
		b.manager = lease.NewManager(lease.Config{
			Store: b.store, Holder: "h1", Heartbeat: duration / 3, MaxCallBytes: 4 << 20, Logger: slog.New(slog.DiscardHandler),
		})
		require.NoError(t, b.manager.Start(t.Context()))
		b.ref = b.store.Create("x")
		b.claim, b.lease = b.take(b.ref)
		test(t, b)
		b.lease.Close()
		require.NoError(t, b.manager.Stop(t.Context()))
	})
}

func (b *bundle) take(ref *taskstorev1.TaskRef) (*taskstorev1.Claim, *lease.Lease) {
	b.t.Helper()
	begun := time.Now()
	answer, err := b.store.ClaimTasks(b.t.Context(), &taskstorev1.ClaimTasksRequest{
		Lease: durationpb.New(duration), Tasks: []*taskstorev1.TaskRef{ref},
	})
	require.NoError(b.t, err)
	claim := answer.GetResults()[0].GetClaim()
	require.NotNil(b.t, claim)
	return claim, b.manager.Hold(b.t.Context(), claim, begun, duration)
}

func chunk(text string, more bool) *taskstorev1.TaskEvent {
	return &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_ArtifactUpdate{ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{
		Append: more, Artifact: &a2apb.Artifact{ArtifactId: "a1", Parts: []*a2apb.Part{agent.Text(text)}},
	}}}
}

func settlement(s task.State, handled int64) agent.Settlement {
	return agent.Settlement{HandledVersion: handled, Event: &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_StatusUpdate{
		StatusUpdate: &a2apb.TaskStatusUpdateEvent{Status: &a2apb.TaskStatus{State: s}},
	}}}
}

func (b *bundle) emit(texts ...string) {
	b.t.Helper()
	for i, text := range texts {
		require.NoError(b.t, b.lease.Emit(b.t.Context(), chunk(text, i > 0)))
	}
}

func (b *bundle) complete() error {
	return b.lease.Settle(b.t.Context(), settlement(task.Completed, 1))
}

func (b *bundle) parts() string {
	got, _ := b.store.Task(b.ref)
	var texts []string
	for _, a := range got.GetArtifacts() {
		for _, p := range a.GetParts() {
			texts = append(texts, p.GetText())
		}
	}
	return strings.Join(texts, "|")
}

func (b *bundle) state() task.State {
	got, _ := b.store.Task(b.ref)
	return got.GetStatus().GetState()
}

func TestLease_EventsThatFollowEachOtherQuicklyShareACallAndStayEvents(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		_, before := b.store.Task(b.ref)
		b.emit("1", "2", "3")
		time.Sleep(time.Second)
		require.Len(t, b.store.Batches("WriteEvents"), 1)
		require.Equal(t, "1|2|3", b.parts())
		_, after := b.store.Task(b.ref)
		require.Equal(t, before+3, after)
	})
}

func TestLease_SettlingTakesWhatIsPendingAlongAtOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.emit("1")
		begun := time.Now()
		require.NoError(t, b.complete())
		require.Zero(t, time.Since(begun))
		require.Len(t, b.store.Batches("WriteEvents"), 1)
		require.Equal(t, "1", b.parts())
		require.Equal(t, task.Completed, b.state())
		require.NoError(t, b.lease.Context().Err(), "the handler may go on")
		require.ErrorIs(t, b.lease.Emit(t.Context(), chunk("2", true)), agent.ErrEnded)
	})
}

func TestLease_EmitMakesAHandlerWaitThatIsFasterThanTheStore(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		for i := range 1000 {
			require.NoError(t, b.lease.Emit(t.Context(), chunk("x", i > 0)))
		}
		require.Len(t, b.store.Batches("WriteEvents"), 3)
		require.NoError(t, b.lease.Flush(t.Context()))
		_, version := b.store.Task(b.ref)
		require.Equal(t, b.claim.GetVersion()+1000, version)
	})
}

func TestLease_TasksThatWriteAtTheSameTimeShareCalls(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		slow := make(chan struct{})
		b.store.Fault(func(method string, _ int) (error, bool) {
			if method == "WriteEvents" {
				<-slow
			}
			return nil, true
		})
		var writers sync.WaitGroup
		for range 20 {
			_, l := b.take(b.store.Create("y"))
			writers.Go(func() {
				defer l.Close()
				require.NoError(t, l.Settle(t.Context(), settlement(task.Completed, 2)))
			})
			synctest.Wait()
		}
		close(slow)
		writers.Wait()
		require.Equal(t, []int{1, 1, 1, 1, 16}, b.store.Batches("WriteEvents"))
	})
}

func TestLease_HeartbeatsKeepItAndShareACall(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		_, other := b.take(b.store.Create("y"))
		defer other.Close()
		time.Sleep(10 * duration)
		require.NoError(t, b.lease.Context().Err())
		for _, size := range b.store.Batches("RenewLeases") {
			require.Equal(t, 2, size)
		}
		require.NoError(t, b.complete())
	})
}

func TestLease_IsLostBeforeItExpiresWhenItCannotBeRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		begun := time.Now()
		b.store.Fault(func(method string, _ int) (error, bool) {
			if method == "RenewLeases" {
				return status.Error(codes.Unavailable, "away"), false
			}
			return nil, true
		})
		<-b.lease.Context().Done()
		require.Less(t, time.Since(begun), duration)
		require.ErrorIs(t, context.Cause(b.lease.Context()), agent.ErrLeaseLost)
		require.ErrorIs(t, b.complete(), agent.ErrLeaseLost)
		require.Equal(t, task.Working, b.state())
	})
}

func TestLease_ClaimWhoseAnswerTookLongIsRenewedAndNotGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.store.SlowAnswer("ClaimTasks", duration-time.Second)
		_, late := b.take(b.store.Create("y"))
		defer late.Close()
		time.Sleep(duration)
		require.NoError(t, context.Cause(late.Context()))

		b.store.Fault(func(method string, _ int) (error, bool) {
			if method == "RenewLeases" {
				return status.Error(codes.Unavailable, "away"), false
			}
			return nil, true
		})
		_, lost := b.take(b.store.Create("z"))
		defer lost.Close()
		synctest.Wait()
		require.ErrorIs(t, context.Cause(lost.Context()), agent.ErrLeaseLost)
	})
}

func TestLease_SlowAnswerDoesNotStretchTheTrust(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		begun := time.Now()
		b.store.Fault(func(method string, call int) (error, bool) {
			switch {
			case method != "RenewLeases":
				return nil, true
			case call == 1:
				time.Sleep(4 * time.Second)
				return nil, true
			default:
				return status.Error(codes.Unavailable, "away"), false
			}
		})
		<-b.lease.Context().Done()
		require.Equal(t, duration/3+duration-duration/5, time.Since(begun), "counted from when the renewal was asked for")
	})
}

func TestLease_ZombieWritesNothingAfterItsSuccessor(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.store.Fault(func(method string, _ int) (error, bool) {
			if method == "RenewLeases" {
				return status.Error(codes.Unavailable, "away"), false
			}
			return nil, true
		})
		time.Sleep(2 * duration)
		b.store.Lapse()
		b.store.Fault(nil)
		_, successor := b.take(b.ref)
		defer successor.Close()

		require.ErrorIs(t, b.lease.Emit(t.Context(), chunk("late", false)), agent.ErrLeaseLost)
		require.ErrorIs(t, b.complete(), agent.ErrLeaseLost)
		require.ErrorIs(t, b.lease.Release(t.Context(), 0, false), agent.ErrLeaseLost)
		require.NoError(t, successor.Settle(t.Context(), settlement(task.Completed, 1)))
		require.Empty(t, b.parts())
	})
}

func TestLease_RefusalOfTheStoreEndsIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.store.Cancel(b.ref)
		require.NoError(t, b.lease.Context().Err())
		require.ErrorIs(t, b.complete(), agent.ErrCanceled)
		require.ErrorIs(t, context.Cause(b.lease.Context()), agent.ErrCanceled)
		require.Equal(t, task.Canceled, b.state())
	})
}

func TestLease_HeartbeatTellsOfACancelWhoseSignalWasLost(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.store.Cancel(b.ref)
		time.Sleep(duration/3 + time.Second)
		require.ErrorIs(t, context.Cause(b.lease.Context()), agent.ErrCanceled)
	})
}

func TestLease_EndsWithTheCauseForWhichItsTaskEnded(t *testing.T) {
	t.Parallel()
	for state, want := range map[task.State]error{
		task.Canceled: agent.ErrCanceled, task.Failed: agent.ErrMaxRuntime, task.Completed: agent.ErrLeaseLost,
	} {
		for name, ask := range map[string]func(b *bundle) error{
			"heartbeat": func(b *bundle) error {
				time.Sleep(duration/3 + time.Second)
				return context.Cause(b.lease.Context())
			},
			"write":   (*bundle).complete,
			"release": func(b *bundle) error { return b.lease.Release(b.t.Context(), 0, false) },
		} {
			t.Run(name+" of "+state.String(), func(t *testing.T) {
				inBubble(t, func(t *testing.T, b *bundle) {
					b.store.End(b.ref, state)
					require.ErrorIs(t, ask(b), want)
					require.ErrorIs(t, context.Cause(b.lease.Context()), want)
				})
			})
		}
	}
}

func TestManager_ControlTellsOfATurnThatTookTooLong(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.manager.Handle(&executorv1.Control{
			TaskId: b.ref.GetTaskId(), LeaseEpoch: b.claim.GetLeaseEpoch(),
			Kind: &executorv1.Control_Overrun{Overrun: &executorv1.Overrun{}},
		})
		require.ErrorIs(t, context.Cause(b.lease.Context()), agent.ErrMaxRuntime)
	})
}

func TestManager_ControlReachesTheLeaseOfItsEpochAlone(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		reason, err := structpb.NewStruct(map[string]any{"reason": "late"})
		require.NoError(t, err)
		cancel := func(epoch int64) *executorv1.Control {
			return &executorv1.Control{
				TaskId: b.ref.GetTaskId(), LeaseEpoch: epoch,
				Kind: &executorv1.Control_Canceled{Canceled: &executorv1.Canceled{Metadata: reason}},
			}
		}
		b.manager.Handle(cancel(b.claim.GetLeaseEpoch() - 1))
		require.NoError(t, b.lease.Context().Err())
		b.manager.Handle(cancel(b.claim.GetLeaseEpoch()))
		var canceled *agent.CanceledError
		require.ErrorAs(t, context.Cause(b.lease.Context()), &canceled)
		require.Equal(t, "late", canceled.Metadata.AsMap()["reason"])
	})
}

func TestLease_IsToldOfANewMessageOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		version := b.store.Say(b.ref, "more")
		b.manager.Handle(&executorv1.Control{
			TaskId: b.ref.GetTaskId(), LeaseEpoch: b.claim.GetLeaseEpoch(),
			Kind: &executorv1.Control_MessageAppended{MessageAppended: &executorv1.MessageAppended{Version: version}},
		})
		<-b.lease.Appended()
		time.Sleep(duration)
		select {
		case <-b.lease.Appended():
			require.Fail(t, "the heartbeat told of it again")
		default:
		}
		b.store.Say(b.ref, "and more")
		<-b.lease.Appended()
	})
}

func TestLease_NewerMessageKeepsTheLeaseAndWhatWasEmitted(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		version := b.store.Say(b.ref, "more")
		b.emit("1")
		require.ErrorIs(t, b.complete(), agent.ErrNewerMessage)
		require.Equal(t, "1", b.parts())
		require.NoError(t, b.lease.Settle(t.Context(), settlement(task.Completed, version)))
	})
}

func TestLease_WriteWhoseAnswerWasLostIsNotDoubled(t *testing.T) {
	t.Parallel()
	for name, committed := range map[string]bool{"committed": true, "not committed": false} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, b *bundle) {
				b.store.Fault(func(method string, call int) (error, bool) {
					if method == "WriteEvents" && call%2 == 1 {
						return status.Error(codes.Unavailable, "connection lost"), committed
					}
					return nil, true
				})
				b.emit("1", "2")
				require.NoError(t, b.lease.Flush(t.Context()))
				require.Equal(t, "1|2", b.parts())
				b.emit("3")
				require.NoError(t, b.complete())
				require.Equal(t, "3", b.parts())
				require.Equal(t, task.Completed, b.state())
			})
		})
	}
}

func TestLease_EventThatTheStoreRefusesLeavesOnlyFailing(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.emit(strings.Repeat("x", storefake.Limit))
		require.ErrorIs(t, b.lease.Flush(t.Context()), agent.ErrTooLarge)
		require.ErrorIs(t, b.lease.Emit(t.Context(), chunk("y", false)), agent.ErrTooLarge)
		require.ErrorIs(t, b.complete(), agent.ErrTooLarge)
		require.NoError(t, b.lease.Settle(t.Context(), settlement(task.Failed, 1)))
	})
}

func TestLease_WriteThatTheStoreNeverTakesIsGivenUp(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		broken := true
		b.store.Fault(func(method string, _ int) (error, bool) {
			if method == "WriteEvents" && broken {
				return status.Error(codes.Internal, "broken"), false
			}
			return nil, true
		})
		b.emit("poison")
		require.ErrorIs(t, b.lease.Flush(t.Context()), agent.ErrRefused)
		broken = false
		require.NoError(t, b.lease.Settle(t.Context(), settlement(task.Failed, 1)))
	})
}

func TestLease_ReleaseGivesTheTaskBack(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.store.Fault(func(method string, call int) (error, bool) {
			if method == "ReleaseTasks" && call == 1 {
				return status.Error(codes.Unavailable, "away"), false
			}
			return nil, true
		})
		b.emit("1")
		require.NoError(t, b.lease.Release(t.Context(), time.Minute, true))
		require.Equal(t, "1", b.parts())
		queued, delay := b.store.Queued(b.ref)
		require.True(t, queued)
		require.Equal(t, time.Minute, delay)
		require.ErrorIs(t, b.complete(), agent.ErrEnded)
	})
}

func TestLease_HeartbeatDuringTheLastWriteDoesNotSpoilIt(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		time.Sleep(duration/3 - time.Second)
		b.store.SlowAnswer("WriteEvents", 2*time.Second)
		require.NoError(t, b.complete())
		require.NoError(t, b.lease.Context().Err())
	})
}

func TestLease_HeartbeatAnsweredAfterTheLastWriteCancelsNobody(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		time.Sleep(duration/3 - time.Second)
		b.store.SlowAnswer("WriteEvents", 2*time.Second)
		b.store.SlowAnswer("RenewLeases", 2*time.Second)
		require.NoError(t, b.complete())
		time.Sleep(2 * time.Second)
		require.NoError(t, context.Cause(b.lease.Context()), "a handler may go on after its last write")
	})
}

func TestLease_CloseStopsWhatIsLeft(t *testing.T) {
	inBubble(t, func(t *testing.T, b *bundle) {
		b.emit("1")
		b.lease.Close()
		time.Sleep(time.Second)
		require.Empty(t, b.parts())
		require.Error(t, b.lease.Emit(t.Context(), chunk("2", true)))
		require.NotErrorIs(t, context.Cause(b.lease.Context()), agent.ErrLeaseLost)
	})
}
