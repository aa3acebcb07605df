package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	maxAttempts = 3
	lease       = time.Minute
	holder      = "executor-1"
	eventLimit  = 64 << 10
)

// fixture is a store of its own over the shared database, with a tenant of its
// own, and the steps that cases are made of.
type fixture struct {
	*testing.T
	db    Database
	store *store.Store
	clock *clock
	sent  *recorder
	scope *taskstorev1.Scope
	// Numbers message ids.
	messages atomic.Int64
}

func newFixture(t *testing.T, db Database) *fixture {
	t.Helper()
	f := &fixture{
		T: t, db: db,
		clock: &clock{now: time.Date(2026, 3, 1, 9, 0, 0, 123_000_000, time.UTC)},
		sent:  &recorder{name: "publisher-" + uuid.NewString()},
		// Lower case, as a routing id would have it.
		scope: &taskstorev1.Scope{Tenant: "t-" + uuid.NewString(), Agent: "a-" + uuid.NewString()[:8], Subject: "alice"},
	}
	f.store = f.newStore(db.Engine)
	return f
}

func (f *fixture) newStore(e engine.Engine) *store.Store {
	limits := config.DefaultLimits()
	limits.Event, limits.Artifacts, limits.History = eventLimit, 4*eventLimit, 50
	s := store.New(e, store.Options{
		Publisher: f.sent,
		Agents: &config.Agents{
			Version: "v1", Limits: limits,
			Agents: []config.Agent{{Name: f.scope.GetAgent(), MaxAttempts: maxAttempts, Lease: config.Duration(lease)}},
		},
		CursorKey:  task.CursorKey("0123456789abcdef"),
		Now:        f.clock.Now,
		NewID:      task.NewID,
		ContextTTL: time.Hour,
		Parallel:   f.db.Parallel,
	})
	f.Cleanup(s.Close)
	return s
}

// newMessage is a message with an id of its own.
func (f *fixture) newMessage(text string) *a2apb.Message {
	return &a2apb.Message{
		MessageId: fmt.Sprintf("m-%d", f.messages.Add(1)), Role: a2apb.Role_ROLE_USER, Parts: []*a2apb.Part{part(text)},
	}
}

func (f *fixture) request(m *a2apb.Message) *taskstorev1.AcceptMessageRequest {
	return &taskstorev1.AcceptMessageRequest{
		Scope: f.scope, Message: m, NewTaskId: task.NewID(), NewContextId: task.NewID(),
		Request: &eventv1.RequestInfo{Subject: f.scope.GetSubject(), AcceptedOutputModes: []string{"text/plain"}},
		Dedupe:  true, Fingerprint: task.Fingerprint(m), WhileRunning: taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_APPEND,
	}
}

func (f *fixture) tryAccept(r *taskstorev1.AcceptMessageRequest) (*taskstorev1.AcceptMessageResponse, error) {
	result := f.store.AcceptMessages(f.Context(), []*taskstorev1.AcceptMessageRequest{r})[0]
	return result.Value, result.Err
}

func (f *fixture) accept(r *taskstorev1.AcceptMessageRequest) *taskstorev1.AcceptMessageResponse {
	f.Helper()
	answer, err := f.tryAccept(r)
	require.NoError(f, err)
	return answer
}

// start accepts a message that starts a task, and returns the task's id.
func (f *fixture) start(text string) string {
	f.Helper()
	return f.accept(f.request(f.newMessage(text))).GetTask().GetId()
}

func (f *fixture) followUp(id, text string) *taskstorev1.AcceptMessageRequest {
	m := f.newMessage(text)
	m.TaskId = id
	return f.request(m)
}

func (f *fixture) tryClaim(id string) *taskstorev1.ClaimResult {
	f.Helper()
	return f.claimAs(holder, id)
}

func (f *fixture) claimAs(holder, id string) *taskstorev1.ClaimResult {
	f.Helper()
	answer, err := f.store.ClaimTasks(f.Context(), &taskstorev1.ClaimTasksRequest{
		Agent: f.scope.GetAgent(), Holder: holder, Lease: durationpb.New(lease),
		Tasks: []*taskstorev1.TaskRef{{Tenant: f.scope.GetTenant(), TaskId: id}},
	})
	require.NoError(f, err)
	require.Len(f, answer.GetResults(), 1)
	require.Equal(f, id, answer.GetResults()[0].GetTaskId())
	return answer.GetResults()[0]
}

func (f *fixture) claim(id string) *taskstorev1.Claim {
	f.Helper()
	result := f.tryClaim(id)
	require.NotNil(f, result.GetClaim(), "refused: %s", result.GetRefusal())
	return result.GetClaim()
}

// running starts a task and claims it.
func (f *fixture) running() *taskstorev1.Claim {
	f.Helper()
	return f.claim(f.start("go"))
}

func leaseOf(c *taskstorev1.Claim) *taskstorev1.LeaseRef {
	return &taskstorev1.LeaseRef{TaskId: c.GetTask().GetId(), LeaseEpoch: c.GetLeaseEpoch()}
}

// taskWrite is a write under a claim that has seen all of the claim's messages.
func taskWrite(c *taskstorev1.Claim, events ...*taskstorev1.TaskEvent) *taskstorev1.TaskWrite {
	w := &taskstorev1.TaskWrite{Lease: leaseOf(c), Events: events}
	for _, m := range c.GetMessages() {
		w.HandledVersion = m.GetVersion()
	}
	return w
}

func (f *fixture) write(w *taskstorev1.TaskWrite) *taskstorev1.WriteResult {
	f.Helper()
	return f.writeAs(holder, w)
}

func (f *fixture) writeAs(holder string, w *taskstorev1.TaskWrite) *taskstorev1.WriteResult {
	f.Helper()
	answer, err := f.store.WriteEvents(f.Context(), &taskstorev1.WriteEventsRequest{Holder: holder, Writes: []*taskstorev1.TaskWrite{w}})
	require.NoError(f, err)
	require.Len(f, answer.GetResults(), 1)
	require.Equal(f, w.GetLease().GetTaskId(), answer.GetResults()[0].GetTaskId())
	return answer.GetResults()[0]
}

// emit writes events under a claim and requires that they commit.
func (f *fixture) emit(c *taskstorev1.Claim, events ...*taskstorev1.TaskEvent) int64 {
	f.Helper()
	result := f.write(taskWrite(c, events...))
	require.Equal(f, taskstorev1.Refusal_REFUSAL_UNSPECIFIED, result.GetRefusal())
	return result.GetVersion()
}

func (f *fixture) release(c *taskstorev1.Claim, failed bool, delay time.Duration) taskstorev1.Refusal {
	f.Helper()
	answer, err := f.store.ReleaseTasks(f.Context(), &taskstorev1.ReleaseTasksRequest{
		Holder: holder, Releases: []*taskstorev1.Release{{Lease: leaseOf(c), Failed: failed, Delay: durationpb.New(delay)}},
	})
	require.NoError(f, err)
	return answer.GetResults()[0].GetRefusal()
}

func (f *fixture) renew(c *taskstorev1.Claim) *taskstorev1.RenewResult {
	f.Helper()
	answer, err := f.store.RenewLeases(f.Context(), &taskstorev1.RenewLeasesRequest{
		Holder: holder, Lease: durationpb.New(lease), Leases: []*taskstorev1.LeaseRef{leaseOf(c)},
	})
	require.NoError(f, err)
	return answer.GetResults()[0]
}

func (f *fixture) tryCancel(id string) (*taskstorev1.CancelTaskResponse, error) {
	result := f.store.CancelTasks(f.Context(), []*taskstorev1.CancelTaskRequest{{Scope: f.scope, TaskId: id}})[0]
	return result.Value, result.Err
}

func (f *fixture) cancel(id string) *taskstorev1.CancelTaskResponse {
	f.Helper()
	answer, err := f.tryCancel(id)
	require.NoError(f, err)
	return answer
}

func (f *fixture) get(id string) (*a2apb.Task, int64) {
	f.Helper()
	answer, err := f.store.GetTask(f.Context(), &taskstorev1.GetTaskRequest{Scope: f.scope, TaskId: id})
	require.NoError(f, err)
	return answer.GetTask(), answer.GetVersion()
}

// events reads a task's whole log.
func (f *fixture) events(id string) []*eventv1.Event {
	f.Helper()
	answer, err := f.store.ListEvents(f.Context(), &taskstorev1.ListEventsRequest{Scope: f.scope, TaskId: id})
	require.NoError(f, err)
	return answer.GetEvents()
}

// settled brings a new task into a state and returns the claim that did it; the
// claim is of the first turn and may be over.
func (f *fixture) settled(state task.State) *taskstorev1.Claim {
	f.Helper()
	c := f.running()
	if state == task.Canceled {
		f.cancel(c.GetTask().GetId())
		return c
	}
	if state != task.Working {
		f.emit(c, status(state, ""))
	}
	return c
}

func part(text string) *a2apb.Part { return &a2apb.Part{Content: &a2apb.Part_Text{Text: text}} }

func status(state task.State, text string) *taskstorev1.TaskEvent {
	s := &a2apb.TaskStatus{State: state}
	if text != "" {
		s.Message = &a2apb.Message{MessageId: "s-" + text, Role: a2apb.Role_ROLE_AGENT, Parts: []*a2apb.Part{part(text)}}
	}
	return &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{Status: s}}}
}

func chunk(id, text string, appended bool) *taskstorev1.TaskEvent {
	return chunkOf(&a2apb.Artifact{ArtifactId: id, Parts: []*a2apb.Part{part(text)}}, appended)
}

func chunkOf(a *a2apb.Artifact, appended bool) *taskstorev1.TaskEvent {
	return &taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_ArtifactUpdate{ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{
		Artifact: a, Append: appended,
	}}}
}

// texts joins the texts of parts with a space.
func texts(parts []*a2apb.Part) string {
	var all []string
	for _, p := range parts {
		all = append(all, p.GetText())
	}
	return strings.Join(all, " ")
}

// history is the texts of a task's history, in order.
func history(t *a2apb.Task) []string {
	all := []string{}
	for _, m := range t.GetHistory() {
		all = append(all, texts(m.GetParts()))
	}
	return all
}

// clock is a clock that cases move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) advance(by time.Duration) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(by)
	return c.now
}

// recorder is a publisher that remembers what it was given.
type recorder struct {
	name string

	mu       sync.Mutex
	last     int64
	settled  int
	reserved int
	notices  []store.Notice
}

func (r *recorder) Reserve(n int) store.Reservation {
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.last + 1
	r.last += int64(n)
	r.reserved++
	return &reservation{recorder: r, first: first}
}

// take returns what came since the last call.
func (r *recorder) take() []store.Notice {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.notices
	r.notices = nil
	return taken
}

type reservation struct {
	*recorder
	first int64
}

func (r *reservation) Publisher() string { return r.name }

func (r *reservation) First() int64 { return r.first }

func (r *reservation) Commit(_ context.Context, notices []store.Notice) { r.settle(notices) }

func (r *reservation) Abort() { r.settle(nil) }

func (r *reservation) Doubt() { r.settle(nil) }

func (r *reservation) settle(notices []store.Notice) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.settled++
	r.notices = append(r.notices, notices...)
}
