package store

import (
	"context"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
)

// AcceptMessages takes senders' messages, each once: it creates a task,
// continues one, or answers with what an earlier acceptance made.
func (s *Store) AcceptMessages(
	ctx context.Context, requests []*taskstorev1.AcceptMessageRequest,
) []Result[*taskstorev1.AcceptMessageResponse] {
	return write(ctx, s, "accept message", requests, s.newAcceptance, s.accepted)
}

// fullRetry is what a sender is asked to wait for room in an agent's queue.
const fullRetry = 2 * time.Second

// acceptance is the change that takes one message.
type acceptance struct {
	acceptInput
	size         int
	contextTTL   time.Duration
	contentLimit int64
	// Whether the agent's queue takes no new task.
	full bool

	// What was decided.
	refused   error
	duplicate *engine.Dedupe
	created   *a2apb.Task
	version   int64
}

type acceptInput struct {
	scope    engine.Scope
	owner    string
	message  *a2apb.Message
	request  []byte
	info     *eventv1.RequestInfo
	newTask  string
	newCtx   string
	dedupe   dedupe
	whenBusy taskstorev1.FollowUpPolicy
}

func (s *Store) newAcceptance(_ context.Context, r *taskstorev1.AcceptMessageRequest) (*acceptance, error) {
	if err := s.checkMessage(r.GetScope(), r.GetMessage()); err != nil {
		return nil, err
	}
	if err := s.checkHistoryLength(r.HistoryLength); err != nil {
		return nil, err
	}
	scope, err := s.scope(r.GetScope())
	if err != nil {
		return nil, err
	}
	info := r.GetRequest()
	if info == nil {
		info = &eventv1.RequestInfo{}
	}
	request, err := proto.Marshal(info)
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	a := &acceptance{
		acceptInput: acceptInput{
			scope: scope, owner: r.GetScope().GetSubject(),
			message: r.GetMessage(), request: request, info: info,
			newTask: r.GetNewTaskId(), newCtx: r.GetNewContextId(), whenBusy: r.GetWhileRunning(),
		},
		size:         proto.Size(r),
		contextTTL:   s.ContextTTL,
		contentLimit: int64(s.Agents.Limits.Artifacts),
	}
	if a.starts() {
		if !canonicalID(a.newTask) {
			return nil, a2aerr.Invalid("newTaskId", "a UUID")
		}
		a.full = s.Full != nil && s.Full(scope.Agent)
	}
	a.dedupe, err = newDedupe(r.GetDedupe(), r.GetScope(), r.GetMessage(), r.GetFingerprint())
	return a, err
}

// starts tells whether the message starts a task.
func (a *acceptance) starts() bool { return a.message.GetTaskId() == "" }

func (a *acceptance) Size() int { return a.size }

func (a *acceptance) Keys() []any {
	keys := a.dedupe.keys()
	if a.starts() {
		return append(keys, a.newTask)
	}
	return append(keys, a.message.GetTaskId())
}

func (a *acceptance) selects(now time.Time, sel *engine.Selection) {
	if a.starts() {
		a.dedupe.reserve(now, sel, engine.Dedupe{TaskID: a.newTask, AcceptedVersion: 1})
		return
	}
	// A sender's task id may be anything; the record gets it once it is known.
	a.dedupe.reserve(now, sel, engine.Dedupe{})
	sel.Tasks = append(sel.Tasks, engine.TaskKey{Scope: a.scope, ID: a.message.GetTaskId()})
}

// decide looks at the dedupe key before the task: a message that was accepted
// once is not judged again by what the task has become.
func (a *acceptance) decide(now time.Time, rows *engine.Loaded) decision {
	a.refused, a.duplicate, a.created, a.version = nil, nil, nil, 0
	known, err := a.dedupe.find(rows)
	switch {
	case err != nil:
		a.refused = err
		return decision{}
	case known != nil:
		a.duplicate = known
		return decision{}
	}
	var d decision
	if a.starts() {
		d, err = a.create(now)
	} else {
		d, err = a.follow(now, rows.Tasks[a.message.GetTaskId()])
	}
	if err != nil {
		a.refused = err
		return a.dedupe.forget()
	}
	return d
}

func (a *acceptance) create(now time.Time) (decision, error) {
	if a.full {
		return decision{}, a2aerr.Exhausted("the agent has as many tasks waiting as it may", fullRetry)
	}
	contextID := a.message.GetContextId()
	if contextID == "" {
		contextID = a.newCtx
	}
	m, err := ofTask(a.message, a.newTask, contextID)
	if err != nil {
		return decision{}, err
	}
	d, created := begin(now, &engine.Task{
		ID: a.newTask, Tenant: a.scope.Tenant, Agent: a.scope.Agent, Owner: a.owner, ContextID: contextID,
		Traceparent: a.info.GetTraceparent(),
	}, m.message, nil)
	d.queue()
	a.created, a.version = created, d.row.Version
	d.remember(m, a.request, a.contextTTL)
	return d.decision, nil
}

// follow appends to a task. One that waits for its sender goes on first, so that
// the question stands in the history before its answer.
func (a *acceptance) follow(now time.Time, t *engine.Task) (decision, error) {
	if err := a.mayFollow(t); err != nil {
		return decision{}, err
	}
	m, err := ofTask(a.message, t.ID, t.ContextID)
	if err != nil {
		return decision{}, err
	}
	if t.ContentBytes+weight(m, a.request) > a.contentLimit {
		return decision{}, a2aerr.TooLarge("message", "the task holds all that it may: start another one in its context")
	}
	d := revise(now, t)
	if task.Interrupted(t.State) {
		d.wake()
		d.append(m.message, a.info)
		d.row.Traceparent = a.info.GetTraceparent()
		d.queue()
	} else {
		d.append(m.message, a.info)
		d.controlAppended()
	}
	a.version = d.row.Version
	a.dedupe.accepted(d, t.ID, a.version)
	d.remember(m, a.request, a.contextTTL)
	return d.done(), nil
}

func (a *acceptance) mayFollow(t *engine.Task) error {
	switch asked := a.message.GetContextId(); {
	case t == nil:
		return a2aerr.TaskNotFound(a.message.GetTaskId())
	case asked != "" && asked != t.ContextID:
		return a2aerr.Invalid("message.contextId", "must be empty or the context of the task")
	case task.Terminal(t.State):
		return a2aerr.UnsupportedOperation("the task is finished and takes no more messages")
	case !task.Interrupted(t.State) && a.whenBusy == taskstorev1.FollowUpPolicy_FOLLOW_UP_POLICY_REFUSE:
		return a2aerr.UnsupportedOperation("the task is running and takes no message now")
	default:
		return nil
	}
}

// accepted is the answer to a message that was taken, now or before.
func (s *Store) accepted(
	ctx context.Context, r *taskstorev1.AcceptMessageRequest, a *acceptance,
) (*taskstorev1.AcceptMessageResponse, error) {
	if a.refused != nil {
		return nil, a.refused
	}
	answer := &taskstorev1.AcceptMessageResponse{AcceptedVersion: a.version}
	if a.created != nil {
		t := &a2apb.Task{Id: a.created.GetId(), ContextId: a.created.GetContextId(), Status: a.created.GetStatus(), History: a.created.GetHistory()}
		task.TrimHistory(t, s.historyLength(r.HistoryLength))
		answer.Outcome, answer.Version = &taskstorev1.AcceptMessageResponse_Task{Task: t}, a.version
		return answer, nil
	}
	record := engine.Dedupe{TaskID: r.GetMessage().GetTaskId(), AcceptedVersion: a.version}
	if a.duplicate != nil {
		record, answer.Duplicate = *a.duplicate, true
	}
	made, err := s.madeOf(ctx, a.scope, record, r.HistoryLength)
	if err != nil {
		return nil, err
	}
	answer.Version, answer.AcceptedVersion = made.version, record.AcceptedVersion
	if made.reply != nil {
		answer.Outcome = &taskstorev1.AcceptMessageResponse_Reply{Reply: made.reply}
	} else {
		answer.Outcome = &taskstorev1.AcceptMessageResponse_Task{Task: made.task}
	}
	return answer, nil
}
