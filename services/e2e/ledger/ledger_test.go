// Package ledger_test plays the worked example from submit to next month over
// each binding, with an executor of its own beside the cluster.
package ledger_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// example is the folder of the worked example: a module of its own, an agents
// file and the files of two months.
const example = "../../../examples/ledger"

const patience = time.Minute

const (
	submitted     = a2apb.TaskState_TASK_STATE_SUBMITTED
	inputRequired = a2apb.TaskState_TASK_STATE_INPUT_REQUIRED
	completed     = a2apb.TaskState_TASK_STATE_COMPLETED
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func TestTheWorkedExample(t *testing.T) {
	t.Parallel()
	binary := harness.Build(t, example, ".", "GOWORK=off")
	agentsFile := filepath.Join(example, "agents.yaml")
	file, err := os.ReadFile(agentsFile)
	require.NoError(t, err)
	for _, engine := range []harness.Engine{harness.SQLite, harness.Postgres} {
		for i, name := range []string{"jsonrpc", "rest", "grpc"} {
			t.Run(string(engine)+"/"+name, func(t *testing.T) {
				t.Parallel()
				cluster := harness.Start(t, harness.Options{Engine: engine, AgentsFile: file})
				s := &sender{Binding: cluster.Client.Bindings("")[i], t: t}
				// There is no executor yet, so the streams see all that happens.
				first := s.submit(s.month("2026-09"))
				cut := s.subscribe(first.task.GetId())
				executor := harness.StartExecutor(t, cluster.Backend(t), binary)
				asked := s.untilAsked(first, cut)
				done := s.answer(first, asked)

				executor.Stop(t)
				in := s.month("2026-10")
				in.Message.ContextId = done.GetContextId()
				in.Message.ReferenceTaskIds = []string{done.GetId()}
				next := s.submit(in)
				executor.Start(t)
				s.remembers(done, next)
				s.unchanged(first, done)
			})
		}
	}
}

// untilAsked watches the first month up to the question: one stream as it comes,
// and one that is cut after the second chunk and resumed.
func (s *sender) untilAsked(first *errand, cut *binding.Stream) *a2apb.Task {
	s.t.Helper()
	seen := s.read(cut, chunk(2))
	cut.Close()
	first.seen = append(first.seen, s.read(first.stream, inState(inputRequired))...)
	asked := s.get(first.task.GetId())
	require.Contains(s.t, text(asked.GetStatus().GetMessage().GetParts()), "50")
	s.requireThreeChunks(first.seen)
	s.requireTold(first.seen, asked)
	require.Len(s.t, asked.GetArtifacts()[0].GetParts(), 3, "GetTask has what the cut stream missed")

	again := s.resume(asked.GetId(), seen[len(seen)-1])
	defer again.Close()
	if s.Name() == "grpc" { // no event ids: a snapshot has what was missed
		e, err := again.Next()
		require.NoError(s.t, err)
		s.same(asked, e.GetTask())
	} else {
		seen = append(seen, s.read(again, inState(inputRequired))...)
		s.sameEvents(first.seen, seen)
	}
	for range 2 { // a duplicate of the message changes nothing
		s.same(asked, s.send(first.in))
	}
	return asked
}

// answer finishes the first month by a follow-up.
func (s *sender) answer(first *errand, asked *a2apb.Task) *a2apb.Task {
	s.t.Helper()
	in := s.message(&a2apb.Part{Content: &a2apb.Part_Text{Text: "yes"}})
	in.Message.TaskId = asked.GetId()
	done := s.send(in)
	require.Equal(s.t, completed, done.GetStatus().GetState())
	require.Equal(s.t, asked.GetContextId(), done.GetContextId())
	require.Len(s.t, done.GetArtifacts(), 2)
	require.Len(s.t, done.GetHistory(), 3, "files, question, answer")
	for _, again := range []*a2apb.SendMessageRequest{in, first.in, in} {
		s.same(done, s.send(again))
	}
	first.seen = append(first.seen, s.rest(first.stream)...)
	s.requireTold(first.seen, done)
	if s.Name() != "grpc" { // a finished task's events can still be resumed
		for _, from := range []int{0, 3, len(first.seen) - 2} {
			again := slices.Concat(first.seen[:from+1], s.rest(s.resume(done.GetId(), first.seen[from])))
			s.sameEvents(first.seen, again)
		}
	}
	return done
}

// remembers: the next month comes in the same context, to an executor that has
// started anew; the answer is remembered, and nobody is asked.
func (s *sender) remembers(done *a2apb.Task, next *errand) {
	s.t.Helper()
	events := slices.Concat(next.seen, s.rest(next.stream))
	s.requireThreeChunks(events)
	for _, e := range events {
		require.False(s.t, inState(inputRequired)(e), "asked again")
	}
	got := s.get(next.task.GetId())
	s.requireTold(events, got)
	require.Equal(s.t, completed, got.GetStatus().GetState())
	require.NotEqual(s.t, done.GetId(), got.GetId())
	require.Equal(s.t, done.GetContextId(), got.GetContextId())
	require.Len(s.t, got.GetArtifacts(), 2)
	require.Len(s.t, got.GetHistory(), 1)
	require.Equal(s.t, []string{done.GetId()}, got.GetHistory()[0].GetReferenceTaskIds())
	require.Contains(s.t, text(got.GetArtifacts()[1].GetParts()), done.GetId(), "the report names the month before")
	s.same(got, s.send(next.in))
}

// unchanged: what came later did not touch the first month.
func (s *sender) unchanged(first *errand, done *a2apb.Task) {
	s.t.Helper()
	s.same(done, s.get(done.GetId()))
	s.same(done, s.send(first.in))
}

// requireThreeChunks: matches.json came live in three chunks of one artifact.
func (s *sender) requireThreeChunks(events []binding.Event) {
	s.t.Helper()
	n := 0
	for _, e := range events {
		if update := e.GetArtifactUpdate(); update.GetArtifact().GetArtifactId() == "matches" {
			n++
			require.Equal(s.t, n > 1, update.GetAppend())
			require.Equal(s.t, n == 3, update.GetLastChunk())
			require.Len(s.t, update.GetArtifact().GetParts(), 1)
		}
	}
	require.Equal(s.t, 3, n)
}

// requireTold: the events make the task, each version is in one event at most
// and has one, but for those of the sender's follow-ups.
func (s *sender) requireTold(events []binding.Event, task *a2apb.Task) {
	s.t.Helper()
	told, err := binding.Replay(events)
	require.NoError(s.t, err)
	require.NoError(s.t, binding.Compare(told, task))
	if s.Name() == "grpc" {
		return
	}
	followUps := -1
	for _, m := range task.GetHistory() {
		if m.GetRole() == a2apb.Role_ROLE_USER {
			followUps++
		}
	}
	last := 0
	for _, e := range events {
		version, err := strconv.Atoi(e.ID)
		require.NoError(s.t, err)
		require.Greater(s.t, version, last)
		last = version
	}
	require.Equal(s.t, len(events)+followUps, last, "a version is missing")
}
