package main

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// admin is a task store's service for operators that keeps what it was asked.
type admin struct {
	taskstorev1.UnimplementedAdminServiceServer

	letters []*taskstorev1.DeadLetter
	results []*taskstorev1.RedriveResult
	err     error

	listed   []*taskstorev1.ListDeadLettersRequest
	redriven *taskstorev1.RedriveDeadLettersRequest
}

// ListDeadLetters answers with pages of two at most, numbered by their tokens.
func (a *admin) ListDeadLetters(
	_ context.Context, r *taskstorev1.ListDeadLettersRequest,
) (*taskstorev1.ListDeadLettersResponse, error) {
	a.listed = append(a.listed, r)
	first := len(r.GetPageToken())
	last := min(first+min(int(r.GetPageSize()), 2), len(a.letters))
	answer := &taskstorev1.ListDeadLettersResponse{DeadLetters: a.letters[first:last]}
	if last < len(a.letters) {
		answer.NextPageToken = strings.Repeat("x", last)
	}
	return answer, a.err
}

func (a *admin) RedriveDeadLetters(
	_ context.Context, r *taskstorev1.RedriveDeadLettersRequest,
) (*taskstorev1.RedriveDeadLettersResponse, error) {
	a.redriven = r
	return &taskstorev1.RedriveDeadLettersResponse{Results: a.results}, a.err
}

// serve puts it on a port.
func (a *admin) serve(t *testing.T) (addr string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	server := grpc.NewServer()
	taskstorev1.RegisterAdminServiceServer(server, a)
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		require.NoError(t, <-done)
	})
	return listener.Addr().String()
}

func (a *admin) run(t *testing.T, args ...string) result {
	t.Helper()
	return errand(t.Context(), append([]string{"admin", "dead"}, append(args, "--taskstore", a.serve(t))...)...)
}

func letters(n int) []*taskstorev1.DeadLetter {
	all := make([]*taskstorev1.DeadLetter, n)
	for i := range all {
		all[i] = &taskstorev1.DeadLetter{
			TaskId: fmt.Sprint("t-", i), Tenant: "acme", Agent: "ledger", Reason: "max_attempts", Attempts: 3,
			GivenUpAt: timestamppb.New(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)),
		}
	}
	return all
}

func TestDeadLettersAreListedAsATable(t *testing.T) {
	t.Parallel()
	a := &admin{letters: letters(3)}
	a.letters[2].Redrive = &taskstorev1.Redrive{TaskId: "t-9"}
	got := a.run(t, "list", "--all")
	require.Zero(t, got.code, got.err)
	require.Equal(t, `TASK  TENANT  AGENT   REASON        ATTEMPTS  SINCE                 NEW TASK
t-0   acme    ledger  max_attempts  3         2026-03-01T09:00:00Z  -
t-1   acme    ledger  max_attempts  3         2026-03-01T09:00:00Z  -
t-2   acme    ledger  max_attempts  3         2026-03-01T09:00:00Z  t-9
`, got.out)
	require.Len(t, a.listed, 2, "all pages")
}

func TestDeadLettersInJSONAreOneALine(t *testing.T) {
	t.Parallel()
	a := &admin{letters: letters(5)}
	got := a.run(t, "list", "-o", "json", "--limit", "3")
	require.Zero(t, got.code, got.err)
	objects := lines(t, got.out)
	require.Len(t, objects, 3)
	require.Equal(t, "t-2", objects[2]["taskId"])
	require.EqualValues(t, 1, a.listed[1].GetPageSize())
	require.Len(t, lines(t, (&admin{letters: letters(5)}).run(t, "list", "-o", "json", "--limit", "0").out), 5)
}

func TestFiltersOfDeadLettersAreSent(t *testing.T) {
	t.Parallel()
	filter := []string{
		"--tenant", "acme", "--agent", "ledger", "--reason", "max_runtime",
		"--since", "2026-03-01T09:00:00Z", "--until", "2026-03-02T09:00:00Z",
	}
	want := &taskstorev1.DeadLetterFilter{
		Tenant: "acme", Agent: "ledger", Reason: "max_runtime",
		Since: timestamppb.New(time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)),
		Until: timestamppb.New(time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)),
	}
	a := &admin{}
	require.Zero(t, a.run(t, append([]string{"redrive", "--limit", "7", "--by", "ops", "--dry-run"}, filter...)...).code)
	require.True(t, proto.Equal(&taskstorev1.RedriveDeadLettersRequest{Filter: want, Limit: 7, By: "ops", DryRun: true}, a.redriven))

	require.Zero(t, a.run(t, append([]string{"list", "--all"}, filter...)...).code)
	require.True(t, proto.Equal(want, a.listed[0].GetFilter()))
	require.Zero(t, a.run(t, append([]string{"list"}, filter...)...).code)
	want.Redriven = new(bool)
	require.True(t, proto.Equal(want, a.listed[1].GetFilter()), "only those that were not redriven, unless asked")
}

func TestRedriveTellsWhatBecameOfEachTask(t *testing.T) {
	t.Parallel()
	a := &admin{results: []*taskstorev1.RedriveResult{
		{TaskId: "t-1", Outcome: taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN, NewTaskId: "t-7"},
		{TaskId: "t-2", Outcome: taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_ALREADY_REDRIVEN, NewTaskId: "t-8"},
	}}
	got := a.run(t, "redrive", "t-1", "t-2")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "TASK  OUTCOME           NEW TASK\nt-1   redriven          t-7\nt-2   already redriven  t-8\n", got.out)
	require.Equal(t, []string{"t-1", "t-2"}, a.redriven.GetTaskIds())
	require.Nil(t, a.redriven.GetFilter())
	require.Equal(t, "t-8", lines(t, a.run(t, "redrive", "-o", "json", "t-1", "t-2").out)[1]["newTaskId"])
	require.Contains(t, a.run(t, "redrive", "--dry-run", "--all").out, "would be redriven")
	require.True(t, proto.Equal(&taskstorev1.DeadLetterFilter{}, a.redriven.GetFilter()))
}

func TestRedriveFailsIfATaskWasLeft(t *testing.T) {
	t.Parallel()
	a := &admin{results: []*taskstorev1.RedriveResult{
		{TaskId: "t-1", Outcome: taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN, NewTaskId: "t-7"},
		{TaskId: "t-2", Outcome: taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND},
		{TaskId: "t-3", Outcome: taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_UNAVAILABLE},
	}}
	got := a.run(t, "redrive", "t-1", "t-2", "t-3")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.out, "t-2   not found          -\nt-3   failed, try again  -\n")
	require.Equal(t, "errand: 2 of 3 tasks were not redriven\n", got.err)
}

func TestRedriveWantsToKnowExactlyWhat(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"nothing":            {},
		"ids and a filter":   {"t-1", "--agent", "ledger"},
		"ids and everything": {"t-1", "--all"},
		"an unknown reason":  {"--reason", "bad-luck"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := errand(t.Context(), append([]string{"admin", "dead", "redrive"}, args...)...)
			require.Equal(t, exitUsage, got.code, got.err)
			require.Empty(t, got.out)
		})
	}
}

func TestWhatAnOperatorIsRefusedIsExplained(t *testing.T) {
	t.Parallel()
	a := &admin{err: a2aerr.Invalid("filter.tenant", "1 to 63 of a-z, 0-9 and '-'")}
	got := a.run(t, "list", "--tenant", "No Name")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "filter.tenant: 1 to 63 of a-z, 0-9 and '-'")
	require.Empty(t, got.out)

	got = errand(t.Context(), "admin", "dead", "list", "--taskstore", "127.0.0.1:1")
	require.Equal(t, exitFailed, got.code)
	require.Contains(t, got.err, "can't reach a task store at 127.0.0.1:1")
	require.Empty(t, got.out)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.Equal(t, exitInterrupted, errand(ctx, "admin", "dead", "list", "--taskstore", "127.0.0.1:1").code)
}
