package postgres_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/stretchr/testify/require"
)

// accept stores a task for a message unless the message is known.
func accept(ctx context.Context, d *database, message string) error {
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: message}
	at := now()
	task := queuedTask(at)
	sel := engine.Selection{Reserve: []engine.Dedupe{{DedupeKey: key, TaskID: task.ID, AcceptedVersion: 1, CreatedAt: at}}}
	return d.Update(ctx, sel, func(l *engine.Loaded) (*engine.Changes, error) {
		if !l.Reserved[key] {
			return nil, nil
		}
		return &engine.Changes{InsertTasks: []*engine.Task{task}, Events: []engine.Event{event(task, 1, 1)}}, nil
	})
}

// load has callers accept messages, each until it succeeds, all the while that
// disturb runs. It requires that every failure may be retried, that each message
// has one task in the end, and tells how many calls failed.
func load(t *testing.T, d *database, disturb func()) int64 {
	t.Helper()
	const callers = 32
	var over atomic.Bool
	var accepted, failed atomic.Int64
	errs := make([]error, callers)
	var group sync.WaitGroup
	for c := range callers {
		group.Go(func() {
			for n := 0; !over.Load() && errs[c] == nil; n++ {
				var failures int64
				failures, errs[c] = insist(t.Context(), d, fmt.Sprint(c, "-", n))
				failed.Add(failures)
				accepted.Add(1)
			}
		})
	}
	disturb()
	over.Store(true)
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.Equal(t, accepted.Load(), one[int64](t, d, "SELECT count(*) FROM tasks"), "one task for each message")
	require.Equal(t, accepted.Load(), one[int64](t, d, "SELECT count(*) FROM events"), "one event for each message")
	t.Log(accepted.Load(), "messages accepted,", failed.Load(), "calls failed")
	return accepted.Load()
}

// insist accepts a message at last, and counts the calls that failed before.
func insist(ctx context.Context, d *database, message string) (failures int64, err error) {
	for {
		err := accept(ctx, d, message)
		if err == nil || !errors.Is(err, engine.ErrUnavailable) && !errors.Is(err, engine.ErrInDoubt) {
			return failures, err
		}
		failures++
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return failures, ctx.Err()
		}
	}
}

// more waits until the callers have got on.
func more(t *testing.T, d *database) {
	t.Helper()
	before := count(t, d)
	require.Eventually(t, func() bool { return count(t, d) > before+50 }, time.Minute, 10*time.Millisecond)
}

func count(t *testing.T, d *database) int {
	t.Helper()
	n, err := d.CountTasks(t.Context(), engine.ListQuery{Scope: engine.Scope{Tenant: tenant, Agent: agent}}, 1e6)
	if err != nil {
		require.ErrorIs(t, err, engine.ErrUnavailable)
	}
	return n
}

func newServer(t *testing.T) *testkit.PostgresServer {
	t.Helper()
	server := testkit.NewPostgresServer(t)
	require.NoError(t, postgres.Migrate(t.Context(), testkit.PostgresURL(server)))
	return server
}

func TestEachCallCommitsOnceOrMayBeRetriedWhateverBecomesOfTheServer(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	d := openDatabase(t, testkit.PostgresURL(server))
	load(t, d, func() {
		for _, disturb := range []func(){
			server.Restart,
			func() { server.Kill(); server.Start() },
			func() { server.Pause(); <-time.After(300 * time.Millisecond); server.Resume() },
			server.Restart,
		} {
			more(t, d)
			disturb()
		}
		more(t, d)
	})
}

func TestAFailOverMovesTheConnectionsToTheNewPrimary(t *testing.T) {
	t.Parallel()
	primary := newServer(t)
	standby := primary.Standby(t)
	d := openDatabase(t, testkit.PostgresURL(standby, primary))
	load(t, d, func() {
		more(t, d)
		primary.Kill()
		standby.Promote()
		more(t, d)
		require.NoError(t, d.Ping(t.Context()))
	})
}

func TestAStandbyAloneIsNoDatabase(t *testing.T) {
	t.Parallel()
	standby := newServer(t).Standby(t)
	d := openDatabase(t, testkit.PostgresURL(standby))
	require.ErrorIs(t, d.Ping(t.Context()), engine.ErrUnavailable)
	require.ErrorIs(t, accept(t.Context(), d, "m"), engine.ErrUnavailable)
	standby.Promote()
	require.NoError(t, d.Ping(t.Context()))
	require.NoError(t, accept(t.Context(), d, "m"))
}

// A primary that was demoted goes on to answer on its old connections.
func TestConnectionsToAServerThatBecameReadOnlyAreLeft(t *testing.T) {
	t.Parallel()
	primary := newServer(t)
	standby := primary.Standby(t)
	d := openDatabase(t, testkit.PostgresURL(primary, standby))
	require.NoError(t, accept(t.Context(), d, "before"))
	becomeReadOnly(primary, "on")
	standby.Exec("ALTER SYSTEM SET synchronous_standby_names = ''")
	standby.Promote()
	require.Eventually(t, func() bool { return accept(t.Context(), d, rand.Text()) == nil }, time.Minute, time.Millisecond)
	for range 20 {
		require.NoError(t, accept(t.Context(), d, rand.Text()), "no connection is left that leads to the old one")
	}
}

func becomeReadOnly(server *testkit.PostgresServer, setting string) {
	server.Exec("ALTER SYSTEM SET default_transaction_read_only = " + setting)
	server.Exec("SELECT pg_reload_conf()")
}

func TestAServerThatBecameReadOnlyIsNotReady(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	d := openDatabase(t, testkit.PostgresURL(server))
	require.NoError(t, d.Ping(t.Context()))
	becomeReadOnly(server, "on")
	require.Eventually(t, func() bool { return errors.Is(d.Ping(t.Context()), postgres.ErrReadOnly) }, time.Minute, time.Millisecond)
	require.ErrorIs(t, d.Ping(t.Context()), engine.ErrUnavailable)
	becomeReadOnly(server, "off")
	require.Eventually(t, func() bool { return d.Ping(t.Context()) == nil }, time.Minute, time.Millisecond)
	require.NoError(t, accept(t.Context(), d, "after"))
}
