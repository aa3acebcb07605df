package sqlite_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/sqlite"
	"github.com/google/uuid"
	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"
)

var began = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

func newTask() *engine.Task {
	return &engine.Task{
		ID: uuid.NewString(), Tenant: "t", Agent: "a", Owner: "o", ContextID: "c", CreatedAt: began,
		State: a2apb.TaskState_TASK_STATE_SUBMITTED, StatusVersion: 1, StatusTime: began, Version: 1, MessageVersion: 1,
		Phase: engine.PhaseQueued, QueuedAt: began, EnqueueCount: 1,
	}
}

func update(ctx context.Context, e *sqlite.Engine, c *engine.Changes) error {
	return e.Update(ctx, engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) { return c, nil })
}

func sql(t *testing.T, path, statement string) error {
	t.Helper()
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	return db.Exec("PRAGMA busy_timeout = 5000; " + statement)
}

func TestAnEngineIsReadyOnItsOwnSchemaAlone(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "empty.db")
	e, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	require.Error(t, e.Ping(t.Context()))
	require.NoError(t, sqlite.Migrate(t.Context(), path))
	require.NoError(t, sqlite.Migrate(t.Context(), path), "a second time there is nothing to do")
	require.NoError(t, e.Ping(t.Context()))
	require.NoError(t, sql(t, path, "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, 1)"))
	require.ErrorContains(t, e.Ping(t.Context()), "version 99")
}

func TestAFileThatCannotBeOpenedIsAnError(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "missing", "x.db")
	_, err := sqlite.Open(t.Context(), path)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.Error(t, sqlite.Migrate(t.Context(), path))
}

func TestWhatWasCommittedIsThereAfterAReopen(t *testing.T) {
	t.Parallel()
	e, path := open(t)
	task := newTask()
	require.NoError(t, update(t.Context(), e, &engine.Changes{InsertTasks: []*engine.Task{task}}))
	again, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	defer again.Close()
	found, err := again.ReadTasks(t.Context(), engine.Scope{Tenant: "t"}, []string{task.ID}, engine.Detail{})
	require.NoError(t, err)
	require.Equal(t, task, found[0].Task)
}

func TestAClosedEngineServesNoMore(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(t.Context(), path))
	e, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	e.Close()
	require.ErrorIs(t, e.Ping(t.Context()), engine.ErrUnavailable)
	require.NoError(t, os.Remove(path), "nothing lies beside the file")
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	require.Empty(t, left)
}

func TestAPanicLeavesNoTransactionBehind(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	require.Panics(t, func() {
		_ = e.Update(t.Context(), engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) { panic("poison") })
	})
	require.NoError(t, update(t.Context(), e, &engine.Changes{InsertTasks: []*engine.Task{newTask()}}))
}

func TestTheErrorOfADecisionComesBackAsItIs(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	refused := errors.New("refused")
	key := engine.DedupeKey{Tenant: "t", Subject: "s", Agent: "a", MessageID: "m"}
	sel := engine.Selection{Reserve: []engine.Dedupe{{DedupeKey: key, CreatedAt: began}}}
	err := e.Update(t.Context(), sel, func(*engine.Loaded) (*engine.Changes, error) { return nil, refused })
	require.Same(t, refused, err)
	_, err = e.ReadDedupe(t.Context(), key)
	require.ErrorIs(t, err, engine.ErrNotFound)
}

func TestACanceledContextStopsAQuery(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	_, err := e.ReadTasks(ctx, engine.Scope{Tenant: "t"}, []string{"x"}, engine.Detail{})
	require.ErrorIs(t, err, gone)
	require.ErrorIs(t, update(ctx, e, &engine.Changes{}), gone)
	require.NoError(t, update(t.Context(), e, &engine.Changes{}))
}

func TestOldEventsGoOnceTheyArePublished(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	task := newTask()
	changes := &engine.Changes{InsertTasks: []*engine.Task{task}}
	for v := range int64(2500) {
		changes.Events = append(changes.Events, engine.Event{
			Tenant: "t", TaskID: task.ID, Version: v + 1, CreatedAt: began.Add(time.Duration(v) * time.Second), Publisher: "p", Seq: v + 1,
		})
	}
	require.NoError(t, update(t.Context(), e, changes))
	require.NoError(t, e.BeatPublisher(t.Context(), "p", 2200, began))
	left := func() (versions []int64) {
		events, _, err := e.ReadEvents(t.Context(), engine.Scope{Tenant: "t"}, task.ID, 0, 5000)
		require.NoError(t, err)
		for _, event := range events {
			versions = append(versions, event.Version)
		}
		return versions
	}
	require.NoError(t, e.PurgeEvents(t.Context(), began, began.Add(2100*time.Second)))
	require.Len(t, left(), 400)
	require.EqualValues(t, 2101, left()[0])
	require.NoError(t, e.PurgeEvents(t.Context(), began, began.Add(2400*time.Second)))
	require.Len(t, left(), 300, "the last hundred of the old ones are not published")
	require.EqualValues(t, 2201, left()[0])
	require.NoError(t, e.AdvancePublisher(t.Context(), "p", 2500))
	require.NoError(t, e.DropPublisher(t.Context(), "p"))
	require.NoError(t, e.PurgeEvents(t.Context(), began, began.Add(time.Hour)))
	require.Empty(t, left())
}

func TestEveryListIsReadFromAnIndexInOrder(t *testing.T) {
	t.Parallel()
	e, _ := open(t)
	for _, owner := range []string{"", "o"} {
		for _, contextID := range []string{"", "c"} {
			for _, state := range []a2apb.TaskState{0, 1, 3} {
				plan, err := e.ExplainList(t.Context(), engine.ListQuery{
					Scope: engine.Scope{Tenant: "t", Agent: "a", Owner: owner}, ContextID: contextID, State: state, Limit: 10,
				})
				require.NoError(t, err)
				require.NotContains(t, plan, "TEMP B-TREE", "sorted: %s", plan)
				require.Contains(t, plan, "USING INDEX", plan)
			}
		}
	}
}
