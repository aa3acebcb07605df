// Package ledger_test plays the worked example from submit to next month over
// each binding, with an executor of its own beside the cluster.
package ledger_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// example is the folder of the worked example: a module of its own, an agents
// file and the files of two months.
const example = "../../../examples/ledger"

const patience = time.Minute

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
				executor := harness.StartExecutor(t, cluster, binary, agentsFile)
				p := &play{Binding: cluster.Client.Bindings("")[i], t: t}
				p.firstMonth()
				executor.Stop(t)
				executor.Start(t)
				p.nextMonth()
			})
		}
	}
}

// play is one sender's way through the example.
type play struct {
	binding.Binding
	t *testing.T
	// The first month's task.
	task *a2apb.Task
}

func (p *play) firstMonth() {
	p.t.Helper()
	in := p.month("2026-09")
	in.Configuration = &a2apb.SendMessageConfiguration{ReturnImmediately: true}
	sent := p.send(in)
	require.Equal(p.t, sent.GetId(), p.send(in).GetId(), "sent twice")

	asked := p.watch(sent.GetId())
	require.Equal(p.t, "matches.json", asked.GetArtifacts()[0].GetName())
	require.Contains(p.t, text(asked.GetStatus().GetMessage().GetParts()), "50")
	p.same(asked, p.get(sent.GetId()))
	p.same(asked, p.send(in))

	answer := p.message(&a2apb.Part{Content: &a2apb.Part_Text{Text: "yes"}})
	answer.Message.TaskId = asked.GetId()
	p.task = p.send(answer)
	require.Equal(p.t, a2apb.TaskState_TASK_STATE_COMPLETED, p.task.GetStatus().GetState())
	require.Len(p.t, p.task.GetArtifacts(), 2)
	for _, again := range []*a2apb.SendMessageRequest{answer, in} {
		p.same(p.task, p.send(again))
	}
	p.same(p.task, p.get(p.task.GetId()))
}

// nextMonth comes in the same context, to an executor that has started anew: the
// answer is remembered, and nobody is asked.
func (p *play) nextMonth() {
	p.t.Helper()
	in := p.month("2026-10")
	in.Message.ContextId = p.task.GetContextId()
	in.Message.ReferenceTaskIds = []string{p.task.GetId()}
	next := p.send(in)
	require.Equal(p.t, a2apb.TaskState_TASK_STATE_COMPLETED, next.GetStatus().GetState())
	require.NotEqual(p.t, p.task.GetId(), next.GetId())
	require.Equal(p.t, p.task.GetContextId(), next.GetContextId())
	require.Len(p.t, next.GetArtifacts(), 2)
	require.Len(p.t, next.GetHistory(), 1)
	require.Equal(p.t, []string{p.task.GetId()}, next.GetHistory()[0].GetReferenceTaskIds())
	require.Contains(p.t, text(next.GetArtifacts()[1].GetParts()), p.task.GetId(), "the report names the month before")
	p.same(next, p.send(in))
	p.same(p.task, p.get(p.task.GetId()))
}

// watch subscribes, is cut, and goes on: with Last-Event-ID where there are
// event ids, and by a new snapshot where there are none.
func (p *play) watch(id string) *a2apb.Task {
	p.t.Helper()
	first := p.subscribe(id)
	snapshot, err := first.Next()
	require.NoError(p.t, err)
	first.Close()
	asked := p.await(id, a2apb.TaskState_TASK_STATE_INPUT_REQUIRED)
	require.Len(p.t, asked.GetArtifacts()[0].GetParts(), 3)
	if p.Name() == "grpc" {
		again := p.subscribe(id)
		defer again.Close()
		e, err := again.Next()
		require.NoError(p.t, err)
		p.same(asked, e.GetTask())
		return asked
	}
	p.resume(snapshot, asked)
	return asked
}

// resume reads what came after the snapshot up to the question: what of the
// three chunks it had not, in order, and without a hole.
func (p *play) resume(snapshot binding.Event, asked *a2apb.Task) {
	p.t.Helper()
	again := p.subscribe(asked.GetId(), binding.With("Last-Event-ID", snapshot.ID))
	defer again.Close()
	version, err := strconv.Atoi(snapshot.ID)
	require.NoError(p.t, err)
	chunks := 0
	if had := snapshot.GetTask().GetArtifacts(); len(had) > 0 {
		chunks = len(had[0].GetParts())
	}
	for snapshot.GetTask().GetStatus().GetState() != a2apb.TaskState_TASK_STATE_INPUT_REQUIRED {
		e, err := again.Next()
		require.NoError(p.t, err)
		version++
		require.Equal(p.t, strconv.Itoa(version), e.ID)
		if chunk := e.GetArtifactUpdate(); chunk != nil {
			chunks++
			require.Equal(p.t, chunks > 1, chunk.GetAppend())
			require.Equal(p.t, chunks == 3, chunk.GetLastChunk())
		}
		if e.GetStatusUpdate().GetStatus().GetState() == a2apb.TaskState_TASK_STATE_INPUT_REQUIRED {
			break
		}
	}
	require.Equal(p.t, 3, chunks)
}

// month is the two files of a month.
func (p *play) month(name string) *a2apb.SendMessageRequest {
	p.t.Helper()
	return p.message(p.file("invoices-"+name+".csv"), p.file("ledger-"+name+".csv"))
}

func (p *play) file(name string) *a2apb.Part {
	p.t.Helper()
	content, err := os.ReadFile(filepath.Join(example, "data", name))
	require.NoError(p.t, err)
	return &a2apb.Part{Content: &a2apb.Part_Raw{Raw: content}, Filename: name, MediaType: "text/csv"}
}

func (p *play) message(parts ...*a2apb.Part) *a2apb.SendMessageRequest {
	return &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER, Parts: parts,
	}}
}

func (p *play) within() context.Context {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	p.t.Cleanup(cancel)
	return ctx
}

func (p *play) send(in *a2apb.SendMessageRequest) *a2apb.Task {
	p.t.Helper()
	answer, err := p.Call(p.within(), binding.SendMessage, in)
	require.NoError(p.t, err)
	require.Nil(p.t, answer.Err)
	return answer.Result.(*a2apb.SendMessageResponse).GetTask()
}

func (p *play) get(id string) *a2apb.Task {
	p.t.Helper()
	answer, err := p.Call(p.within(), binding.GetTask, &a2apb.GetTaskRequest{Id: id})
	require.NoError(p.t, err)
	require.Nil(p.t, answer.Err)
	return answer.Result.(*a2apb.Task)
}

func (p *play) await(id string, state a2apb.TaskState) *a2apb.Task {
	p.t.Helper()
	var got *a2apb.Task
	require.Eventually(p.t, func() bool {
		got = p.get(id)
		return got.GetStatus().GetState() == state
	}, patience, 20*time.Millisecond)
	return got
}

func (p *play) subscribe(id string, options ...binding.Option) *binding.Stream {
	p.t.Helper()
	s, answer, err := p.Open(p.within(), binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: id}, options...)
	require.NoError(p.t, err)
	require.NotNil(p.t, s, "%v", answer)
	return s
}

func (p *play) same(want, got *a2apb.Task) {
	p.t.Helper()
	require.True(p.t, proto.Equal(want, got), "want %v\ngot  %v", want, got)
}

func text(parts []*a2apb.Part) string {
	var all strings.Builder
	for _, part := range parts {
		all.WriteString(part.GetText())
	}
	return all.String()
}
