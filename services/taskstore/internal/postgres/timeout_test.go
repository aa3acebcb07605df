package postgres_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// An answer is waited for a second and a half here, a locked row for a second, or
// a tenth of one by changes that share a transaction.
const (
	shortAnswer = 1500 * time.Millisecond
	shortLock   = time.Second
)

func openImpatient(t *testing.T, url string) *database {
	t.Helper()
	return openWith(t, url, postgres.Options{AnswerTimeout: shortAnswer})
}

// timed runs a call that must not be stopped by its caller.
func timed(t *testing.T, call func(context.Context) error) (time.Duration, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	began := time.Now()
	err := call(ctx)
	require.NoError(t, ctx.Err(), "it was given up by its caller alone")
	return time.Since(began), err
}

func TestAServerThatAnswersNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	url := testkit.PostgresURL(server) + "&pool_max_conns=1"
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: "m"}
	for name, call := range map[string]func(context.Context, *database) error{
		"a read": func(ctx context.Context, d *database) error {
			_, err := d.ReadDedupe(ctx, key)
			return err
		},
		"the first half of an update": func(ctx context.Context, d *database) error { return accept(ctx, d, "m") },
		"a purge":                     func(ctx context.Context, d *database) error { return d.PurgeEvents(ctx, now(), now()) },
	} {
		d := openImpatient(t, url)
		require.NoError(t, d.Ping(t.Context()))
		server.Pause()
		took, err := timed(t, func(ctx context.Context) error { return call(ctx, d) })
		server.Resume()
		require.ErrorIs(t, err, engine.ErrUnavailable, name)
		require.Less(t, took, 3*shortAnswer, "%s is not tried again after such a wait", name)
		require.NoError(t, d.Ping(t.Context()), "the next one is not affected")
	}
}

func TestACommitThatIsNotAnsweredIsInDoubt(t *testing.T) {
	t.Parallel()
	server := newServer(t)
	d := openImpatient(t, testkit.PostgresURL(server))
	calls := 0
	_, err := timed(t, func(ctx context.Context) error {
		return d.Update(ctx, engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) {
			calls++
			server.Pause()
			return &engine.Changes{InsertTasks: []*engine.Task{queuedTask(now())}}, nil
		})
	})
	server.Resume()
	require.ErrorIs(t, err, engine.ErrInDoubt)
	require.Equal(t, 1, calls)
}

// What a slow statement would have done is known: the server says so before the
// program gives it up.
func TestASlowStatementIsEndedByTheServer(t *testing.T) {
	t.Parallel()
	d := openImpatient(t, newURL(t))
	key := engine.ContextKey{Tenant: tenant, Owner: owner, Agent: agent, ContextID: "c"}
	at := now()
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{queuedTask(at)},
		PutContexts: []engine.Context{{ContextKey: key, CreatedAt: at, UpdatedAt: at, ExpiresAt: at}},
	})
	for _, statement := range []string{
		"ALTER TABLE contexts RENAME TO all_contexts",
		"CREATE VIEW contexts AS SELECT * FROM all_contexts WHERE pg_sleep(60) IS NOT NULL",
		"CREATE FUNCTION dawdle() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(60); RETURN NULL; END'",
		"CREATE TRIGGER dawdle AFTER INSERT ON tasks EXECUTE FUNCTION dawdle()",
		"ALTER TABLE tasks RENAME TO all_tasks",
		"CREATE VIEW tasks AS SELECT * FROM all_tasks WHERE pg_sleep(60) IS NOT NULL",
	} {
		require.NoError(t, d.sql(t, statement))
	}
	for name, call := range map[string]func(context.Context) error{
		"read": func(ctx context.Context) error {
			_, err := d.ReadContext(ctx, key)
			return err
		},
		"page": func(ctx context.Context) error {
			_, err := d.ListTasks(ctx, engine.ListQuery{Scope: engine.Scope{Tenant: tenant}, Limit: 1})
			return err
		},
		"update": func(ctx context.Context) error { return accept(ctx, d, "m") },
		"purge": func(ctx context.Context) error {
			_, err := d.PurgeContexts(ctx, at.Add(time.Second), 1)
			return err
		},
	} {
		_, err := timed(t, call)
		require.ErrorIs(t, err, engine.ErrUnavailable, name)
		failure, _ := errors.AsType[*pgconn.PgError](err)
		require.NotNil(t, failure, name)
		require.Equal(t, "57014", failure.Code, name)
	}
}

// anything is a change that may share a transaction with any other.
type anything struct{}

func (anything) Keys() []any { return nil }
func (anything) Size() int   { return 1 }

func TestALockedRowIsWaitedForNotForLong(t *testing.T) {
	t.Parallel()
	d := openImpatient(t, newURL(t)+"&pool_max_conns=1")
	task, at := queuedTask(now()), now()
	ref := engine.LeaseRef{TaskID: task.ID, Epoch: 1}
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{task},
		PutLeases:   []engine.Lease{{LeaseRef: ref, Holder: "me", ExpiresAt: at}},
	})
	other, err := d.pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer other.Rollback(context.Background())
	_, err = other.Exec(t.Context(), "SELECT FROM tasks, leases FOR UPDATE")
	require.NoError(t, err)

	followUp := selectTasks(task.ID)
	followUp.Reserve = []engine.Dedupe{{DedupeKey: engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: "m"}, CreatedAt: at}}
	update := func(ctx context.Context) error { return d.Update(ctx, followUp, decideOn(nil)) }
	alone, err := timed(t, update)
	require.ErrorIs(t, err, engine.ErrLocked)
	require.Greater(t, alone, shortLock-time.Millisecond, "a change of its own waits for its rows")

	b := batch.New(batch.Options{
		Parallel: 1, Items: 2, Bytes: 2, Waiting: 2, WaitingBytes: 2, Timeout: time.Minute,
		Split: func(error) bool { return false },
	}, func(ctx context.Context, _ []anything) error { return update(ctx) })
	defer b.Close()
	shared, err := timed(t, func(ctx context.Context) error { return errors.Join(b.Do(ctx, anything{}, anything{})...) })
	require.ErrorIs(t, err, engine.ErrLocked)
	require.Less(t, shared, shortLock, "those that share a transaction are tried alone soon")

	_, err = timed(t, func(ctx context.Context) error {
		_, err := d.RenewLeases(ctx, "me", []engine.LeaseRef{ref}, at)
		return err
	})
	require.ErrorIs(t, err, engine.ErrLocked)

	page := func(ctx context.Context) error {
		_, err := d.ListTasks(ctx, engine.ListQuery{Scope: engine.Scope{Tenant: tenant}, Limit: 1})
		return err
	}
	require.NoError(t, page(t.Context()), "prepares the statements, which would wait for the table too")
	_, err = other.Exec(t.Context(), "LOCK TABLE tasks")
	require.NoError(t, err)
	_, err = timed(t, page)
	require.ErrorIs(t, err, engine.ErrLocked, "a page")
	require.NoError(t, other.Rollback(t.Context()))
}
