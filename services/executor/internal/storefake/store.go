// Package storefake is a task store in memory that keeps the rules an executor
// meets: leases, epochs, refusals, versions. Tests use it where they need to
// make the store slow, silent or wrong, which the real one can't be told to be.
package storefake

import (
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/protobuf/proto"
)

// Tenant and Agent of all tasks.
const (
	Tenant = "default"
	Agent  = "test"
)

// Store is a taskstorev1.TaskStoreServiceClient for what executors call.
type Store struct {
	taskstorev1.TaskStoreServiceClient

	mu    sync.Mutex
	tasks map[string]*record
	calls map[string]int
	// Fault, if set, is asked before each call and may block or fail it; after
	// tells whether the call took effect all the same.
	fault func(method string, call int) (err error, after bool)
	// How long the answers of a method are on their way.
	answers map[string]time.Duration
	// The version of the agents file that the store says it has.
	agentsVersion string
	// Who claimed last.
	holder string
	// Sizes of the batches of each method.
	batches map[string][]int
}

type record struct {
	task     *a2apb.Task
	messages []*eventv1.UserMessage
	version  int64
	handled  int64
	epoch    int64
	sequence int64
	attempt  int32
	turn     time.Time
	age      time.Duration
	queued   bool
	leased   bool
	expires  time.Time
	delay    time.Duration
}

// New returns an empty store.
func New() *Store {
	return &Store{tasks: map[string]*record{}, calls: map[string]int{}, batches: map[string][]int{}, answers: map[string]time.Duration{}}
}

// Fault makes calls fail: f gets the method's name and which call of it this is,
// from 1. With after the call takes effect and only its answer is lost.
func (s *Store) Fault(f func(method string, call int) (err error, after bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// SetAgentsVersion says which agents file the store has.
func (s *Store) SetAgentsVersion(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agentsVersion = version
}

// Holder is the executor that claimed last, and the lease epoch of a task.
func (s *Store) Holder(ref *taskstorev1.TaskRef) (holder string, epoch int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.holder, s.tasks[ref.GetTaskId()].epoch
}

// Attempt counts the claims of a task's turn.
func (s *Store) Attempt(ref *taskstorev1.TaskRef) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.tasks[ref.GetTaskId()].attempt)
}

// Turn says when a task's turn began, by the store's clock, how long ago that is
// by the same, and how many of its claims were lost.
func (s *Store) Turn(ref *taskstorev1.TaskRef, began time.Time, age time.Duration, lost int32) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[ref.GetTaskId()]
	r.turn, r.age, r.attempt = began, age, lost
}

// Trace says which trace the newest message of a task belongs to.
func (s *Store) Trace(ref *taskstorev1.TaskRef, traceparent string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	messages := s.tasks[ref.GetTaskId()].messages
	messages[len(messages)-1].Request.Traceparent = traceparent
}

// SlowAnswer delays the answers of a method, after the calls took effect.
func (s *Store) SlowAnswer(method string, d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[method] = d
}

// Batches are the sizes of a method's calls so far.
func (s *Store) Batches(method string) []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]int(nil), s.batches[method]...)
}

// Create queues a new task with one message of the text.
func (s *Store) Create(text string) *taskstorev1.TaskRef {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &record{task: &a2apb.Task{
		Id: task.NewID(), ContextId: task.NewID(), Status: &a2apb.TaskStatus{State: task.Submitted},
	}, queued: true}
	s.tasks[r.task.GetId()] = r
	r.say(text)
	return &taskstorev1.TaskRef{Tenant: Tenant, TaskId: r.task.GetId()}
}

// Say appends a message of the sender, or continues a task that waits.
func (s *Store) Say(ref *taskstorev1.TaskRef, text string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[ref.GetTaskId()]
	if task.Interrupted(r.state()) {
		r.status(task.Working)
		r.queued, r.attempt, r.turn = true, 0, time.Time{}
	}
	r.say(text)
	return r.version
}

// Cancel cancels a task as its sender does.
func (s *Store) Cancel(ref *taskstorev1.TaskRef) { s.End(ref, task.Canceled) }

// End ends a task by the store's own decision.
func (s *Store) End(ref *taskstorev1.TaskRef, as task.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[ref.GetTaskId()]
	r.status(as)
	r.queued, r.leased = false, false
}

// Lapse queues the tasks again whose leases have expired.
func (s *Store) Lapse() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.tasks {
		if r.leased && time.Now().After(r.expires) {
			r.leased, r.queued = false, true
		}
	}
}

// Task reads a task and its version.
func (s *Store) Task(ref *taskstorev1.TaskRef) (*a2apb.Task, int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[ref.GetTaskId()]
	return proto.CloneOf(r.task), r.version
}

// Queued tells whether a task waits for a claim, and after which delay.
func (s *Store) Queued(ref *taskstorev1.TaskRef) (bool, time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.tasks[ref.GetTaskId()]
	return r.queued, r.delay
}

func (r *record) state() task.State { return r.task.GetStatus().GetState() }

func (r *record) say(text string) {
	r.version++
	m := &a2apb.Message{
		MessageId: task.NewID(), Role: a2apb.Role_ROLE_USER, TaskId: r.task.GetId(), ContextId: r.task.GetContextId(),
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}
	u := &eventv1.UserMessage{Message: m, Request: &eventv1.RequestInfo{Subject: "anonymous"}, Version: r.version}
	r.messages = append(r.messages, u)
	r.task.History = append(r.task.History, m)
}

func (r *record) status(s task.State) {
	r.apply(&taskstorev1.TaskEvent{Kind: &taskstorev1.TaskEvent_StatusUpdate{
		StatusUpdate: &a2apb.TaskStatusUpdateEvent{Status: &a2apb.TaskStatus{State: s}},
	}})
}

func (r *record) apply(e *taskstorev1.TaskEvent) {
	r.version++
	var err error
	switch kind := e.GetKind().(type) {
	case *taskstorev1.TaskEvent_StatusUpdate:
		err = task.ApplyStatus(r.task, kind.StatusUpdate)
	case *taskstorev1.TaskEvent_ArtifactUpdate:
		err = task.ApplyArtifact(r.task, kind.ArtifactUpdate)
	}
	if err != nil {
		panic(err)
	}
}
