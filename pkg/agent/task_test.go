package agent_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/agent"
	"github.com/errandhq/errand/pkg/agent/agenttest"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
)

// cluster runs handle in memory; what it logs is in the buffer.
func cluster(handle agent.HandlerFunc) (*agenttest.Cluster, *safeBuffer) {
	logs := &safeBuffer{}
	a := agent.Agent{Name: "test", Handler: handle}
	return agenttest.New(a, slog.New(slog.NewTextHandler(logs, nil))), logs
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func send(t *testing.T, c *agenttest.Cluster, m *a2apb.Message) *a2apb.Task {
	t.Helper()
	got, err := c.Send(m)
	require.NoError(t, err)
	return got
}

func start(t *testing.T, c *agenttest.Cluster, text string) *agenttest.Turn {
	t.Helper()
	turn, err := c.Start(agenttest.Text(text))
	require.NoError(t, err)
	return turn
}

func answer(text string, to *a2apb.Task) *a2apb.Message {
	m := agenttest.Text(text)
	m.TaskId = to.GetId()
	return m
}

func statusText(got *a2apb.Task) string { return agent.TextOf(got.GetStatus().GetMessage()) }

func artifactText(a *a2apb.Artifact) string {
	var texts []string
	for _, p := range a.GetParts() {
		texts = append(texts, p.GetText())
	}
	return strings.Join(texts, "|")
}

func TestHandler_ReturningNilCompletes(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		return t.Emit(ctx, &a2apb.Artifact{Name: "answer", Parts: []*a2apb.Part{agent.Text("hi")}})
	})
	got := send(t, c, agenttest.Text("hello"))
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Equal(t, "hi", artifactText(got.GetArtifacts()[0]))
	require.NotEmpty(t, got.GetArtifacts()[0].GetArtifactId())
}

func TestHandler_ReturningNilUnsettledFailsWhenItMustSettle(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(_ context.Context, t *agent.Task) error {
		t.MustSettle()
		return nil
	})
	require.Equal(t, task.Failed, send(t, c, agenttest.Text("x")).GetStatus().GetState())
}

func TestHandler_FailuresShowTheSenderAnIDAndTheLogTheCause(t *testing.T) {
	t.Parallel()
	for name, handle := range map[string]agent.HandlerFunc{
		"error":  func(context.Context, *agent.Task) error { return errors.New("secret sauce") },
		"panic":  func(context.Context, *agent.Task) error { panic("secret sauce") },
		"goexit": func(context.Context, *agent.Task) error { runtime.Goexit(); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, logs := cluster(handle)
			got := send(t, c, agenttest.Text("x"))
			require.Equal(t, task.Failed, got.GetStatus().GetState())
			text, id, found := strings.Cut(statusText(got), " Reference: ")
			require.True(t, found)
			require.Equal(t, "The agent failed.", text)
			require.Contains(t, logs.String(), id)
			require.Contains(t, logs.String(), got.GetId())
			if name != "goexit" {
				require.Contains(t, logs.String(), "secret sauce")
			}
		})
	}
}

func TestHandler_FailAndRejectSayWhatTheAuthorSaid(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		if agent.TextOf(t.Message().GetMessage()) == "fail" {
			return t.Fail(ctx, agent.Text("no such flight"))
		}
		return t.Reject(ctx, agent.Text("not my job"))
	})
	got := send(t, c, agenttest.Text("fail"))
	require.Equal(t, task.Failed, got.GetStatus().GetState())
	require.Equal(t, "no such flight", statusText(got))
	got = send(t, c, agenttest.Text("reject"))
	require.Equal(t, task.Rejected, got.GetStatus().GetState())
	require.Equal(t, "not my job", statusText(got))
}

func TestHandler_AskingParksAndTheAnswerRunsItAgain(t *testing.T) {
	t.Parallel()
	var keys []string
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		keys = append(keys, t.IdempotencyKey())
		if len(t.Messages()) == 1 {
			return t.AskInput(ctx, agent.Text("which colour?"))
		}
		return t.Complete(ctx, agent.Text(agent.TextOf(t.NewMessages()[0].GetMessage())))
	})
	asked := send(t, c, agenttest.Text("order mugs"))
	require.Equal(t, task.InputRequired, asked.GetStatus().GetState())
	got := send(t, c, answer("blue", asked))
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Equal(t, "blue", statusText(got))
	require.NotEqual(t, keys[0], keys[1], "a turn has a key of its own")
}

func TestHandler_GrantResumesOnce(t *testing.T) {
	t.Parallel()
	var grant string
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		if len(t.NewMessages()) == 0 {
			return t.Complete(ctx, agent.Text("booked"))
		}
		grant = t.NewGrant()
		return t.AskAuth(ctx, grant, agent.Text("log in at the bank"))
	})
	asked := send(t, c, agenttest.Text("pay"))
	require.Equal(t, task.AuthRequired, asked.GetStatus().GetState())

	_, err := c.Resume("nonsense")
	require.ErrorIs(t, err, agent.ErrInvalidGrant)
	got, err := c.Resume(grant)
	require.NoError(t, err)
	require.Equal(t, "booked", statusText(got))
	_, err = c.Resume(grant)
	require.Error(t, err)
}

func TestHandler_NewerMessageIsHandedOverBeforeTheTurnIsSettled(t *testing.T) {
	t.Parallel()
	for name, settle := range map[string]agent.HandlerFunc{
		"returning nil":       func(context.Context, *agent.Task) error { return nil },
		"returning the error": func(ctx context.Context, t *agent.Task) error { return t.Complete(ctx) },
		"going on after the error": func(ctx context.Context, t *agent.Task) error {
			_ = t.Complete(ctx)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, said := make(chan struct{}, 2), make(chan struct{})
			var runs [][]string
			c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
				var texts []string
				for _, m := range t.NewMessages() {
					texts = append(texts, agent.TextOf(m.GetMessage()))
				}
				runs = append(runs, texts)
				running <- struct{}{}
				<-said
				return settle(ctx, t)
			})
			turn := start(t, c, "one")
			<-running
			require.NoError(t, turn.Say(agenttest.Text("two")))
			close(said)
			require.Equal(t, task.Completed, turn.Wait().GetStatus().GetState())
			require.Equal(t, [][]string{{"one"}, {"two"}}, runs)
		})
	}
}

func TestHandler_NextReceivesWhatIsSaidMeanwhile(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		close(running)
		m, err := t.Next(ctx)
		if err != nil {
			return err
		}
		return t.Complete(ctx, agent.Text(agent.TextOf(m.GetMessage())))
	})
	turn := start(t, c, "one")
	<-running
	require.NoError(t, turn.Say(agenttest.Text("two")))
	require.Equal(t, "two", statusText(turn.Wait()))
}

func TestHandler_CancelEndsItsContextWithTheMetadata(t *testing.T) {
	t.Parallel()
	running, writes := make(chan struct{}), make(chan error, 1)
	var canceled *agent.CanceledError
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		close(running)
		<-ctx.Done()
		errors.As(context.Cause(ctx), &canceled)
		writes <- t.Complete(ctx)
		return ctx.Err()
	})
	turn := start(t, c, "x")
	<-running
	reason, err := structpb.NewStruct(map[string]any{"reason": "changed my mind"})
	require.NoError(t, err)
	turn.Cancel(reason)
	require.Equal(t, task.Canceled, turn.Wait().GetStatus().GetState())
	require.ErrorIs(t, <-writes, agent.ErrCanceled)
	require.Equal(t, "changed my mind", canceled.Metadata.AsMap()["reason"])
	require.ErrorIs(t, canceled, agent.ErrCanceled)
}

func TestHandler_RunsAgainAfterADrainALossOrARetry(t *testing.T) {
	t.Parallel()
	type attempt struct {
		number        int
		key, artifact string
	}
	for name, tc := range map[string]struct {
		cut    func(*agenttest.Turn)
		number int
	}{
		"a drain is no attempt": {cut: (*agenttest.Turn).Drain, number: 1},
		"a loss is an attempt":  {cut: (*agenttest.Turn).Lose, number: 2},
		"a retry is an attempt": {number: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running := make(chan struct{}, 2)
			var attempts []attempt
			c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
				s := t.Stream(&a2apb.Artifact{Name: "report"})
				attempts = append(attempts, attempt{t.Attempt(), t.IdempotencyKey(), s.ID()})
				if err := s.Send(ctx, agent.Text("a")); err != nil {
					return err
				}
				running <- struct{}{}
				switch {
				case len(attempts) == 2:
					return s.SendLast(ctx, agent.Text("b"))
				case tc.cut == nil:
					return t.Retry(ctx, time.Minute)
				default:
					<-ctx.Done()
					return ctx.Err()
				}
			})
			turn := start(t, c, "x")
			<-running
			if tc.cut != nil {
				tc.cut(turn)
			}
			got := turn.Wait()
			require.Equal(t, task.Completed, got.GetStatus().GetState())
			require.Len(t, attempts, 2)
			require.Equal(t, 1, attempts[0].number)
			require.Equal(t, tc.number, attempts[1].number)
			require.Equal(t, attempts[0].key, attempts[1].key)
			require.Equal(t, attempts[0].artifact, attempts[1].artifact)
			require.Len(t, got.GetArtifacts(), 1)
			require.Equal(t, "a|b", artifactText(got.GetArtifacts()[0]), "what an earlier attempt emitted isn't doubled")
		})
	}
}

func TestHandler_MaySettleWhileDraining(t *testing.T) {
	t.Parallel()
	running := make(chan struct{})
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		close(running)
		<-ctx.Done()
		return t.Complete(ctx)
	})
	turn := start(t, c, "x")
	<-running
	turn.Drain()
	require.Equal(t, task.Completed, turn.Wait().GetStatus().GetState())
}

func TestTask_NothingIsWrittenAfterTheTurnIsSettled(t *testing.T) {
	t.Parallel()
	late := make(chan error, 2)
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		if err := t.Complete(ctx); err != nil {
			return err
		}
		late <- t.Progress(ctx)
		late <- t.Emit(ctx, &a2apb.Artifact{Parts: []*a2apb.Part{agent.Text("x")}})
		return nil
	})
	got := send(t, c, agenttest.Text("x"))
	require.Equal(t, task.Completed, got.GetStatus().GetState())
	require.Empty(t, got.GetArtifacts())
	require.ErrorIs(t, <-late, agent.ErrEnded)
	require.ErrorIs(t, <-late, agent.ErrEnded)
}

func TestTask_ChunksOfAStreamAppendAndANewStreamReplaces(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		s := t.Stream(&a2apb.Artifact{ArtifactId: "a1", Name: "chunks"})
		return errors.Join(s.Send(ctx, agent.Text("1")), s.Send(ctx, agent.Text("2")), s.SendLast(ctx, agent.Text("3")))
	})
	first := send(t, c, agenttest.Text("x"))
	require.Len(t, first.GetArtifacts(), 1)
	require.Equal(t, "1|2|3", artifactText(first.GetArtifacts()[0]))

	var flags [][2]bool
	for _, e := range c.Events(first.GetId())[:3] {
		flags = append(flags, [2]bool{e.GetArtifactUpdate().GetAppend(), e.GetArtifactUpdate().GetLastChunk()})
	}
	require.Equal(t, [][2]bool{{false, false}, {true, false}, {true, true}}, flags)
}

func TestTask_EventAboveTheLimitFailsTheTaskWithTheReason(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		_ = t.Emit(ctx, &a2apb.Artifact{Parts: []*a2apb.Part{agent.Text(strings.Repeat("x", config.DefaultLimits().Event))}})
		return nil
	})
	got := send(t, c, agenttest.Text("x"))
	require.Equal(t, task.Failed, got.GetStatus().GetState())
	require.Contains(t, statusText(got), "The agent's result is larger than allowed: an event of 41943")
}

func TestTask_PartsWithoutAMeaningAreRefusedAndNothingElseIs(t *testing.T) {
	t.Parallel()
	c, _ := cluster(func(ctx context.Context, t *agent.Task) error {
		for _, err := range []error{
			t.Emit(ctx, &a2apb.Artifact{}),
			t.Emit(ctx, &a2apb.Artifact{Parts: []*a2apb.Part{{}}}),
			t.Progress(ctx, &a2apb.Part{}),
		} {
			if !errors.Is(err, agent.ErrInvalid) {
				return errors.New("accepted")
			}
		}
		return nil
	})
	require.Equal(t, task.Completed, send(t, c, agenttest.Text("x")).GetStatus().GetState())
}
