// Package agents has the agents of a chaos run. They do what the text of a
// message says, and what they write shows which run of the handler wrote it:
//
//	steps N MS      N chunks of artifact a1, MS milliseconds apart; COMPLETED
//	ask             INPUT_REQUIRED; the answer becomes artifact "answer", COMPLETED
//	ask steps N MS  INPUT_REQUIRED; on the answer artifact "answer" and then as steps N MS
//	fail            FAILED, on purpose
//	long S          progress for S seconds, COMPLETED
//	msg …           a direct Message that repeats the text; by Hybrid alone
//
// Each run of a handler is written down twice, when it begins and when it ends.
// Chunks, the message of each status and the artifact "answer" are signed with
// the run's id (see journal.Sign). A direct Message isn't, and is no run.
package agents

import (
	"context"
	_ "embed"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// The agents of the file. Worker makes a task of each message, Hybrid answers msg
// directly.
const (
	Worker = "worker"
	Hybrid = "hybrid"
)

// What the file says of each of them: how often a turn may be lost before its
// task fails, and how long a lease holds.
const (
	MaxAttempts = 5
	Lease       = 3 * time.Second
)

//go:embed agents.yaml
var file []byte

// File is the agents file.
func File() []byte { return file }

// Recorder writes down runs.
type Recorder interface {
	Write(r journal.Run) error
}

// New returns the agents, for a process of this name.
func New(process string, pid int, recorder Recorder) []agent.Agent {
	e := &executor{process: process, pid: pid, recorder: recorder}
	handler := agent.HandlerFunc(e.handle)
	return []agent.Agent{
		{Name: Worker, Handler: handler},
		{Name: Hybrid, Handler: handler, Messages: agent.MessageHandlerFunc(answer), Router: agent.RouterFunc(route)},
	}
}

type executor struct {
	process  string
	pid      int
	recorder Recorder
}

func (e *executor) handle(ctx context.Context, t *agent.Task) error {
	r := journal.Run{
		Process: e.process, PID: e.pid, TaskID: t.ID(), Turn: t.IdempotencyKey(), Attempt: t.Attempt(),
		ID: uuid.NewString(), Begun: time.Now(),
	}
	if err := e.recorder.Write(r); err != nil {
		return err
	}
	s := script{Task: t, run: r.ID}
	state, err := s.follow(ctx)
	r.Ended, r.Result = time.Now(), result(ctx, state, err)
	if noted := e.recorder.Write(r); noted != nil {
		return noted
	}
	return err
}

func route(_ context.Context, r *agent.Request) (string, error) {
	if isMessage(agent.TextOf(r.Message())) {
		return "answer", nil
	}
	return "script", nil
}

func answer(_ context.Context, r *agent.Request) error {
	text := agent.TextOf(r.Message())
	if !isMessage(text) {
		return r.NeedTask("only msg is answered by a Message")
	}
	return r.Reply(agent.Text(text))
}

func isMessage(text string) bool { return strings.HasPrefix(text, "msg") }
