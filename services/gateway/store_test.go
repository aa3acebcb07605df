package gateway_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
)

// memory is a task store that keeps everything in memory: the rules of the real
// one without its database. A test is its executor, see emit.
type memory struct {
	// Whether it answers.
	silence silence

	taskstorev1.UnimplementedTaskStoreServiceServer

	mu      sync.Mutex
	tasks   map[string]*row
	keys    map[string]*accepted
	streams map[*feed]struct{}
	version string
	// Called with each task that is queued, if set.
	queued func(id, text string)
	// Called before a message is accepted, if set.
	hold func(ctx context.Context) error
	// Called with the task before an acceptance is answered, if set.
	answering func(id string)
	// Counts calls that change something.
	writes int
	// Events below this version are gone from the log.
	purged int64
	// Receives each answer of GetTask, if set.
	read chan int64
}

type row struct {
	tenant, agent, owner string
	task                 *a2apb.Task
	version              int64
	events               []*eventv1.Event
}

type accepted struct {
	fingerprint []byte
	taskID      string
	reply       *a2apb.Message
	version     int64
}

func newMemory() *memory {
	return &memory{tasks: map[string]*row{}, keys: map[string]*accepted{}, streams: map[*feed]struct{}{}}
}

var cursorKey = task.CursorKey("0123456789abcdef")

func (m *memory) find(scope *taskstorev1.Scope, id string) (*row, error) {
	r := m.tasks[id]
	if r == nil || r.tenant != scope.GetTenant() || r.agent != scope.GetAgent() || scope.GetOwnedOnly() && r.owner != scope.GetSubject() {
		return nil, a2aerr.TaskNotFound(id)
	}
	return r, nil
}

func (r *row) read(historyLength *int32, artifacts bool) *a2apb.Task {
	t := proto.CloneOf(r.task)
	if historyLength != nil {
		task.TrimHistory(t, int(*historyLength))
	}
	if !artifacts {
		t.Artifacts = nil
	}
	return t
}

func key(scope *taskstorev1.Scope, messageID string) string {
	return strings.Join([]string{scope.GetTenant(), scope.GetSubject(), scope.GetAgent(), messageID}, "\x00")
}

// known looks a message up; nil if it is new.
func (m *memory) known(scope *taskstorev1.Scope, messageID string, fingerprint []byte) (*accepted, error) {
	a := m.keys[key(scope, messageID)]
	if a != nil && !bytes.Equal(a.fingerprint, fingerprint) {
		return nil, a2aerr.Invalid("message.messageId", "was used with another content")
	}
	return a, nil
}

func (m *memory) AcceptMessage(ctx context.Context, r *taskstorev1.AcceptMessageRequest) (*taskstorev1.AcceptMessageResponse, error) {
	if m.hold != nil {
		if err := m.hold(ctx); err != nil {
			return nil, err
		}
	}
	response, err := m.accept(r)
	if err == nil && m.answering != nil {
		m.answering(response.GetTask().GetId())
	}
	return response, err
}

func (m *memory) accept(r *taskstorev1.AcceptMessageRequest) (*taskstorev1.AcceptMessageResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	if r.GetDedupe() {
		a, err := m.known(r.GetScope(), r.GetMessage().GetMessageId(), r.GetFingerprint())
		if err != nil {
			return nil, err
		}
		if a != nil {
			return m.again(a, r.HistoryLength), nil
		}
	}
	accept := m.create
	if r.GetMessage().GetTaskId() != "" {
		accept = m.follow
	}
	t, err := accept(r)
	if err != nil {
		return nil, err
	}
	if r.GetDedupe() {
		m.keys[key(r.GetScope(), r.GetMessage().GetMessageId())] = &accepted{
			fingerprint: r.GetFingerprint(), taskID: t.task.GetId(), version: t.version,
		}
	}
	if m.queued != nil {
		go m.queued(t.task.GetId(), r.GetMessage().GetParts()[0].GetText())
	}
	return &taskstorev1.AcceptMessageResponse{
		Outcome: &taskstorev1.AcceptMessageResponse_Task{Task: t.read(r.HistoryLength, true)},
		Version: t.version, AcceptedVersion: t.version,
	}, nil
}

func (m *memory) again(a *accepted, historyLength *int32) *taskstorev1.AcceptMessageResponse {
	if a.reply != nil {
		return &taskstorev1.AcceptMessageResponse{Outcome: &taskstorev1.AcceptMessageResponse_Reply{Reply: a.reply}, Duplicate: true}
	}
	t := m.tasks[a.taskID]
	return &taskstorev1.AcceptMessageResponse{
		Outcome: &taskstorev1.AcceptMessageResponse_Task{Task: t.read(historyLength, true)},
		Version: t.version, AcceptedVersion: a.version, Duplicate: true,
	}
}

func (m *memory) create(r *taskstorev1.AcceptMessageRequest) (*row, error) {
	message := proto.CloneOf(r.GetMessage())
	message.TaskId = r.GetNewTaskId()
	if message.GetContextId() == "" {
		message.ContextId = r.GetNewContextId()
	}
	created := &a2apb.Task{
		Id: message.GetTaskId(), ContextId: message.GetContextId(), History: []*a2apb.Message{message},
		Status: &a2apb.TaskStatus{State: task.Submitted, Timestamp: now()},
	}
	t := &row{tenant: r.GetScope().GetTenant(), agent: r.GetScope().GetAgent(), owner: r.GetScope().GetSubject()}
	m.tasks[created.GetId()] = t
	m.commit(t, &eventv1.Event{Kind: &eventv1.Event_Created{Created: created}})
	return t, nil
}

func (m *memory) follow(r *taskstorev1.AcceptMessageRequest) (*row, error) {
	message := proto.CloneOf(r.GetMessage())
	t, err := m.find(r.GetScope(), message.GetTaskId())
	if err != nil {
		return nil, err
	}
	state := t.task.GetStatus().GetState()
	switch {
	case message.GetContextId() != "" && message.GetContextId() != t.task.GetContextId():
		return nil, a2aerr.Invalid("message.contextId", "must be the task's context")
	case task.Terminal(state):
		return nil, a2aerr.UnsupportedOperation("the task is finished")
	case !task.Interrupted(state) && r.GetWhileRunning() == taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_REFUSE:
		return nil, a2aerr.UnsupportedOperation("the task is running")
	}
	message.ContextId = t.task.GetContextId()
	if task.Interrupted(state) {
		m.commit(t, status(task.Working, ""))
	}
	m.commit(t, &eventv1.Event{Kind: &eventv1.Event_UserMessage{UserMessage: &eventv1.UserMessage{Message: message, Request: r.GetRequest()}}})
	return t, nil
}

// commit gives an event its version and ids, applies and announces it.
func (m *memory) commit(r *row, e *eventv1.Event) {
	r.version++
	e.Tenant, e.Agent, e.Version = r.tenant, r.agent, r.version
	if r.task != nil {
		e.TaskId, e.ContextId = r.task.GetId(), r.task.GetContextId()
	}
	switch kind := e.GetKind().(type) {
	case *eventv1.Event_Created:
		e.TaskId = kind.Created.GetId()
	case *eventv1.Event_StatusUpdate:
		kind.StatusUpdate.TaskId, kind.StatusUpdate.ContextId = e.GetTaskId(), e.GetContextId()
	case *eventv1.Event_ArtifactUpdate:
		kind.ArtifactUpdate.TaskId, kind.ArtifactUpdate.ContextId = e.GetTaskId(), e.GetContextId()
	case *eventv1.Event_UserMessage:
		kind.UserMessage.Version = r.version
	}
	changed, err := task.Apply(r.task, e)
	if err != nil {
		panic(err) // a test emitted what no store would take
	}
	r.task = changed
	r.events = append(r.events, e)
	for f := range m.streams {
		f.announce(e)
	}
}

// emit commits what an executor would.
func (m *memory) emit(id string, events ...*eventv1.Event) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.tasks[id]
	for _, e := range events {
		if task.Terminal(r.task.GetStatus().GetState()) {
			break
		}
		m.commit(r, e)
	}
}

func (m *memory) FindMessage(_ context.Context, r *taskstorev1.FindMessageRequest) (*taskstorev1.FindMessageResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	a, err := m.known(r.GetScope(), r.GetMessageId(), r.GetFingerprint())
	if err != nil || a == nil {
		return &taskstorev1.FindMessageResponse{}, err
	}
	if a.reply != nil {
		return &taskstorev1.FindMessageResponse{Outcome: &taskstorev1.FindMessageResponse_Reply{Reply: a.reply}}, nil
	}
	t := m.tasks[a.taskID]
	return &taskstorev1.FindMessageResponse{
		Outcome: &taskstorev1.FindMessageResponse_Task{Task: t.read(r.HistoryLength, true)},
		Version: t.version, AcceptedVersion: a.version,
	}, nil
}

func (m *memory) StoreReply(_ context.Context, r *taskstorev1.StoreReplyRequest) (*taskstorev1.StoreReplyResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.writes++
	reply := r.GetReply()
	if r.GetDedupe() {
		a, err := m.known(r.GetScope(), r.GetMessage().GetMessageId(), r.GetFingerprint())
		if err != nil {
			return nil, err
		}
		if a != nil && a.reply != nil {
			reply = a.reply
		}
		m.keys[key(r.GetScope(), r.GetMessage().GetMessageId())] = &accepted{fingerprint: r.GetFingerprint(), reply: reply}
	}
	return &taskstorev1.StoreReplyResponse{Outcome: &taskstorev1.StoreReplyResponse_Reply{Reply: reply}}, nil
}

func (m *memory) CancelTask(_ context.Context, r *taskstorev1.CancelTaskRequest) (*taskstorev1.CancelTaskResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.find(r.GetScope(), r.GetTaskId())
	if err != nil {
		return nil, err
	}
	switch state := t.task.GetStatus().GetState(); {
	case state == task.Canceled:
	case task.Terminal(state):
		return nil, a2aerr.TaskNotCancelable(r.GetTaskId())
	default:
		m.writes++
		m.commit(t, status(task.Canceled, ""))
	}
	return &taskstorev1.CancelTaskResponse{Task: t.read(nil, true), Version: t.version}, nil
}

func (m *memory) GetTask(_ context.Context, r *taskstorev1.GetTaskRequest) (*taskstorev1.GetTaskResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.find(r.GetScope(), r.GetTaskId())
	if err != nil {
		return nil, err
	}
	if m.read != nil {
		m.read <- t.version
	}
	return &taskstorev1.GetTaskResponse{Task: t.read(r.HistoryLength, true), Version: t.version}, nil
}

func (m *memory) ListTasks(_ context.Context, r *taskstorev1.ListTasksRequest) (*taskstorev1.ListTasksResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var rows []*row
	for id, t := range m.tasks {
		if _, err := m.find(r.GetScope(), id); err == nil && matches(t.task, r) {
			rows = append(rows, t)
		}
	}
	slices.SortFunc(rows, func(a, b *row) int { return strings.Compare(b.task.GetId(), a.task.GetId()) })
	res := &taskstorev1.ListTasksResponse{TotalSize: int32(len(rows))}
	if r.GetPageToken() != "" {
		c, err := cursorKey.Decode(r.GetPageToken(), r.GetContextId())
		if err != nil {
			return nil, a2aerr.Invalid("pageToken", "must be a token from an earlier page of the same list")
		}
		rows = slices.DeleteFunc(rows, func(t *row) bool { return t.task.GetId() >= c.ID })
	}
	if len(rows) > int(r.GetPageSize()) {
		rows = rows[:r.GetPageSize()]
		res.NextPageToken = cursorKey.Encode(task.Cursor{ID: rows[len(rows)-1].task.GetId()}, r.GetContextId())
	}
	for _, t := range rows {
		res.Tasks = append(res.Tasks, t.read(r.HistoryLength, r.GetIncludeArtifacts()))
	}
	return res, nil
}

func matches(t *a2apb.Task, r *taskstorev1.ListTasksRequest) bool {
	after := r.GetStatusTimestampAfter()
	return (r.GetContextId() == "" || r.GetContextId() == t.GetContextId()) &&
		(r.GetState() == 0 || r.GetState() == t.GetStatus().GetState()) &&
		(after == nil || !t.GetStatus().GetTimestamp().AsTime().Before(after.AsTime()))
}

func (m *memory) ListEvents(_ context.Context, r *taskstorev1.ListEventsRequest) (*taskstorev1.ListEventsResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.find(r.GetScope(), r.GetTaskId())
	if err != nil {
		return nil, err
	}
	res := &taskstorev1.ListEventsResponse{Version: t.version}
	const page = 3
	for v := r.GetAfter() + 1; v > m.purged && v >= 1 && v <= t.version && len(res.Events) < page; v++ {
		res.Events = append(res.Events, t.events[v-1])
	}
	return res, nil
}

func (m *memory) GetVersions(_ context.Context, r *taskstorev1.GetVersionsRequest) (*taskstorev1.GetVersionsResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	res := &taskstorev1.GetVersionsResponse{}
	for _, ref := range r.GetTasks() {
		if t := m.tasks[ref.GetTaskId()]; t != nil && t.tenant == ref.GetTenant() {
			res.Tasks = append(res.Tasks, &taskstorev1.TaskVersion{
				TaskId: ref.GetTaskId(), Version: t.version, State: t.task.GetStatus().GetState(),
			})
		}
	}
	return res, nil
}

func (m *memory) GetInfo(context.Context, *taskstorev1.GetInfoRequest) (*taskstorev1.GetInfoResponse, error) {
	return &taskstorev1.GetInfoResponse{AgentsVersion: m.version}, nil
}

func now() *timestamppb.Timestamp { return timestamppb.New(time.Now().Truncate(time.Millisecond)) }

func status(state task.State, text string) *eventv1.Event {
	s := &a2apb.TaskStatus{State: state, Timestamp: now()}
	if text != "" {
		s.Message = &a2apb.Message{MessageId: task.NewID(), Role: a2apb.Role_ROLE_AGENT, Parts: textParts(text)}
	}
	return &eventv1.Event{Kind: &eventv1.Event_StatusUpdate{StatusUpdate: &a2apb.TaskStatusUpdateEvent{Status: s}}}
}

func artifact(id, text string, appended bool) *eventv1.Event {
	return &eventv1.Event{Kind: &eventv1.Event_ArtifactUpdate{ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{
		Artifact: &a2apb.Artifact{ArtifactId: id, Parts: textParts(text)}, Append: appended,
	}}}
}

func textParts(text string) []*a2apb.Part {
	return []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}}
}
