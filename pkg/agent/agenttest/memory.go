package agenttest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// memory is the task store of a test.
type memory struct {
	mu       sync.Mutex
	tasks    map[string]*record
	order    []*record
	contexts map[string]*taskstorev1.GetContextResponse
	// Stands for the time at which turns begin, which must differ.
	turns int64
}

// record is one task.
type record struct {
	task     *a2apb.Task
	messages []*eventv1.UserMessage
	events   []*taskstorev1.TaskEvent
	version  int64
	handled  int64
	attempt  int32
	turn     int64
	grant    string
	// Nil while nobody holds the task.
	lease *lease
}

func newMemory() *memory {
	return &memory{tasks: map[string]*record{}, contexts: map[string]*taskstorev1.GetContextResponse{}}
}

// accept takes a sender's message: for a new task, to continue one that waits,
// or for a running one.
func (m *memory) accept(message *a2apb.Message) (*record, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.tasks[message.GetTaskId()]
	switch {
	case message.GetTaskId() == "":
		r = m.create(message)
	case r == nil:
		return nil, fmt.Errorf("no task %s", message.GetTaskId())
	case task.Terminal(r.task.GetStatus().GetState()):
		return nil, fmt.Errorf("task %s is %s", r.task.GetId(), r.task.GetStatus().GetState())
	case task.Interrupted(r.task.GetStatus().GetState()):
		m.newTurn(r)
	}
	message = proto.CloneOf(message)
	message.TaskId, message.ContextId = r.task.GetId(), r.task.GetContextId()
	r.append(message)
	return r, nil
}

func (m *memory) create(message *a2apb.Message) *record {
	t := &a2apb.Task{Id: task.NewID(), ContextId: message.GetContextId()}
	if t.ContextId == "" {
		t.ContextId = task.NewID()
	}
	r := &record{task: t}
	m.tasks[t.Id] = r
	m.order = append(m.order, r)
	m.newTurn(r)
	return r
}

func (m *memory) newTurn(r *record) {
	m.turns++
	r.turn, r.attempt = m.turns, 1
	r.setState(task.Working)
}

// claim gives r to a new lease.
func (m *memory) claim(r *record) *lease {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.lease = &lease{m: m, r: r, appended: make(chan struct{}, 1)}
	r.lease.claim = &taskstorev1.Claim{
		Task: proto.CloneOf(r.task), Version: r.version, Tenant: Tenant, Owner: Subject,
		Attempt: r.attempt, Messages: slices.Clone(r.messages), HandledVersion: r.handled,
		TurnStarted: timestamppb.New(time.UnixMilli(r.turn)),
	}
	return r.lease
}

// queued tells whether r is to be run again.
func (m *memory) queued(r *record) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !task.Settled(r.task.GetStatus().GetState())
}

func (r *record) append(message *a2apb.Message) {
	r.version++
	r.messages = append(r.messages, &eventv1.UserMessage{
		Message: message, Request: &eventv1.RequestInfo{Subject: Subject}, Version: r.version,
	})
	r.task.History = append(r.task.History, message)
	if r.lease != nil {
		r.lease.notify()
	}
}

func (r *record) setState(s task.State) {
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
		panic(fmt.Sprintf("task %s: %v", r.task.GetId(), err))
	}
}

// resumer redeems grants and keeps whose they were.
type resumer struct {
	m *memory
	r **record
}

func (s resumer) ResumeTask(_ context.Context, q *taskstorev1.ResumeTaskRequest, _ ...grpc.CallOption) (*taskstorev1.ResumeTaskResponse, error) {
	s.m.mu.Lock()
	defer s.m.mu.Unlock()
	r := s.m.tasks[q.GetTaskId()]
	if r == nil || r.grant != q.GetGrant() {
		return nil, status.Error(codes.NotFound, "no such grant")
	}
	r.grant = ""
	s.m.newTurn(r)
	*s.r = r
	return &taskstorev1.ResumeTaskResponse{Version: r.version}, nil
}
