package publish

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	rules "github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	// What is written while NATS is away: 40 MB.
	outageWrites = 500
	writeEvents  = 10
	eventText    = 8 << 10
)

// A task store goes on as ever while NATS is away, for however long: it keeps
// nothing in memory, and then publishes all of it in order.
func TestAnOutageOfNATSNeitherBlocksTheStoreNorFillsItsMemory(t *testing.T) { // Alone: it measures the heap of the process.
	c := newCluster(t)
	p := c.start(c.newPublisher("store-1"))
	s := c.newStore(p)
	c.disconnect()
	lease := c.begin(s)
	before := heap()
	slowest := time.Duration(0)
	for i := range outageWrites {
		began := time.Now()
		c.write(s, lease, i == 0)
		slowest = max(slowest, time.Since(began))
		require.LessOrEqual(t, p.kept(), p.roomBytes)
	}
	require.Less(t, slowest, 5*time.Second)
	require.Eventually(t, func() bool { return p.kept() == 0 }, patience, soon, "the outbox has it")
	require.Less(t, heap(), before+outageWrites*writeEvents*eventText/4)

	c.reconnect()
	c.requireStored(&task{id: lease.GetTaskId(), version: 2 + outageWrites*writeEvents})
}

// kept is how many bytes of events are in memory.
func (p *Publisher) kept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.pendingBytes
}

func heap() int {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int(stats.HeapAlloc)
}

func (c *cluster) newStore(p *Publisher) *store.Store {
	c.t.Helper()
	agents := &config.Agents{Limits: config.DefaultLimits(), Agents: []config.Agent{{
		Name: agent, MaxAttempts: 3, Lease: config.Duration(time.Minute),
		MaxRuntime: config.Duration(time.Hour), InputTimeout: config.Duration(time.Hour),
	}}}
	s := store.New(c.engine, store.Options{
		Publisher: p, Agents: agents, CursorKey: rules.CursorKey("0123456789abcdef"), Now: time.Now,
		NewID: rules.NewID, ContextTTL: time.Hour, Parallel: 4,
	})
	c.t.Cleanup(s.Close)
	return s
}

// begin accepts a task and claims it.
func (c *cluster) begin(s *store.Store) *taskstorev1.LeaseRef {
	c.t.Helper()
	m := &a2apb.Message{MessageId: "m", Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: "go"}}}}
	accepted := s.AcceptMessages(c.t.Context(), []*taskstorev1.AcceptMessageRequest{{
		Scope: &taskstorev1.Scope{Tenant: tenant, Agent: agent, Subject: "alice"}, Message: m,
		NewTaskId: rules.NewID(), NewContextId: rules.NewID(), Dedupe: true, Fingerprint: rules.Fingerprint(m),
	}})[0]
	require.NoError(c.t, accepted.Err)
	id := accepted.Value.GetTask().GetId()
	claimed, err := s.ClaimTasks(c.t.Context(), &taskstorev1.ClaimTasksRequest{
		Agent: agent, Holder: "executor-1", Lease: durationpb.New(time.Minute),
		Tasks: []*taskstorev1.TaskRef{{Tenant: tenant, TaskId: id}},
	})
	require.NoError(c.t, err)
	return &taskstorev1.LeaseRef{TaskId: id, LeaseEpoch: claimed.GetResults()[0].GetClaim().GetLeaseEpoch()}
}

// write writes the next chunks of an artifact.
func (c *cluster) write(s *store.Store, lease *taskstorev1.LeaseRef, first bool) {
	c.t.Helper()
	w := &taskstorev1.TaskWrite{Lease: lease, HandledVersion: 1}
	for i := range writeEvents {
		w.Events = append(w.Events, &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_ArtifactUpdate{
			ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{
				Append: !first || i > 0,
				Artifact: &a2apb.Artifact{ArtifactId: "a", Parts: []*a2apb.Part{{
					Content: &a2apb.Part_Text{Text: fmt.Sprint(i, strings.Repeat("x", eventText))},
				}}},
			},
		}})
	}
	answer, err := s.WriteEvents(c.t.Context(), &taskstorev1.WriteEventsRequest{Holder: "executor-1", Writes: []*taskstorev1.TaskWrite{w}})
	require.NoError(c.t, err)
	require.Zero(c.t, answer.GetResults()[0].GetRefusal(), answer)
}
