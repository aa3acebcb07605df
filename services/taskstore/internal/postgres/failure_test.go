package postgres_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/stretchr/testify/require"
)

// One request is then one round trip, whatever was prepared before.
const oneRequest = "pool_max_conns=1&default_query_exec_mode=exec"

func TestALostAnswerToACommitLeavesItInDoubt(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		cut  cut
		rows int
	}{
		{"the request was lost", cutBefore, 0},
		{"the answer was lost", cutAfter, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			direct := newDatabase(t)
			p := newPooler(t, direct.url, 1)
			d := openDatabase(t, p.url(oneRequest))
			calls := 0
			err := d.Update(t.Context(), engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) {
				calls++
				p.next.Store(int32(c.cut))
				return &engine.Changes{InsertTasks: []*engine.Task{queuedTask(now())}}, nil
			})
			require.ErrorIs(t, err, engine.ErrInDoubt)
			require.NotErrorIs(t, err, engine.ErrUnavailable)
			require.Equal(t, 1, calls, "it is not tried again")
			require.Equal(t, c.rows, one[int](t, direct, "SELECT count(*) FROM tasks"))
			live(t, d, "the next one is not affected")
		})
	}
}

func TestAConnectionThatIsLostBeforeTheCommitIsReplaced(t *testing.T) {
	t.Parallel()
	direct := newDatabase(t)
	p := newPooler(t, direct.url, 1)
	d := openDatabase(t, p.url(oneRequest))
	for _, now := range []cut{cutBefore, cutAfter} {
		p.next.Store(int32(now))
		live(t, d, "m")
		require.NoError(t, direct.sql(t, "TRUNCATE dedupe_keys"))
	}
}

func TestARestartOfTheServerIsNoticedByNobody(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	live(t, d, "before")
	require.NoError(t, d.sql(t, `
		SELECT pg_terminate_backend(pid)
		FROM pg_stat_activity
		WHERE datname = current_database() AND application_name = 'errand-taskstore'`))
	live(t, d, "after")
}

func TestADatabaseThatIsDownIsUnavailable(t *testing.T) {
	t.Parallel()
	e, err := postgres.Open(t.Context(), "postgres://nobody@127.0.0.1:1/none?sslmode=disable", postgres.Options{})
	require.NoError(t, err, "a program comes up without its database")
	t.Cleanup(e.Close)
	require.ErrorIs(t, e.Ping(t.Context()), engine.ErrUnavailable)
	err = e.Update(t.Context(), engine.Selection{}, decideOn(&engine.Changes{}))
	require.ErrorIs(t, err, engine.ErrUnavailable)
	_, err = e.ReadDedupe(t.Context(), engine.DedupeKey{})
	require.ErrorIs(t, err, engine.ErrUnavailable)
}

func TestACallerThatGivesUpSeesItsOwnReason(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}})
	locked := make(chan struct{})
	done := make(chan error)
	release := make(chan struct{})
	go func() {
		done <- d.Update(t.Context(), selectTasks(task.ID), func(*engine.Loaded) (*engine.Changes, error) {
			close(locked)
			<-release
			return nil, nil
		})
	}()
	<-locked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := d.Update(ctx, selectTasks(task.ID), decideOn(nil))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NotErrorIs(t, err, engine.ErrUnavailable)
	close(release)
	require.NoError(t, <-done)
}

// A program that is stopped between the halves of an update, by a debugger or a
// paused machine, must not stop the others.
func TestAStoppedProgramLosesItsLocks(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	task := queuedTask(now())
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}})
	locked, released := make(chan struct{}), make(chan struct{})
	release := sync.OnceFunc(func() { close(released) })
	defer release()
	stopped := make(chan error, 1)
	go func() {
		stopped <- d.Update(t.Context(), selectTasks(task.ID), func(l *engine.Loaded) (*engine.Changes, error) {
			close(locked)
			<-released
			return &engine.Changes{UpdateTasks: []engine.TaskUpdate{edited(l.Tasks[task.ID], claim)}}, nil
		})
	}()
	<-locked
	d.change(t, task.ID, func(t *engine.Task) { t.Version++ })
	release()
	require.ErrorIs(t, <-stopped, engine.ErrInDoubt, "its COMMIT met a closed connection")
	require.Equal(t, int64(2), d.task(t, task.ID).Version)
	d.change(t, task.ID, func(t *engine.Task) { t.Version++ })
}
