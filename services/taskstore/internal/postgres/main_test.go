package postgres_test

import (
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is when tests begin: real enough for its partition to exist.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// database is a migrated database of the test's own.
type database struct {
	*postgres.Engine
	url string
}

func newDatabase(t testing.TB) *database {
	t.Helper()
	return openDatabase(t, newURL(t))
}

func newURL(t testing.TB) string {
	t.Helper()
	return testkit.PostgresFrom(t, "taskstore", func(url string) error { return postgres.Migrate(t.Context(), url) })
}

func openDatabase(t testing.TB, url string) *database {
	t.Helper()
	return openWith(t, url, postgres.Options{})
}

func openWith(t testing.TB, url string, o postgres.Options) *database {
	t.Helper()
	e, err := postgres.Open(t.Context(), url, o)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return &database{Engine: e, url: url}
}

// sql runs a statement beside the engine.
func (d *database) sql(t testing.TB, statement string, arguments ...any) error {
	t.Helper()
	_, err := d.pool(t).Exec(t.Context(), statement, arguments...)
	return err
}

// one reads one value beside the engine.
func one[T any](t testing.TB, d *database, query string, arguments ...any) T {
	t.Helper()
	var value T
	require.NoError(t, d.pool(t).QueryRow(t.Context(), query, arguments...).Scan(&value))
	return value
}

func (d *database) pool(t testing.TB) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), d.url)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool
}

// update runs changes that need nothing to be loaded.
func (d *database) update(t testing.TB, changes *engine.Changes) {
	t.Helper()
	require.NoError(t, d.Update(t.Context(), engine.Selection{}, decideOn(changes)))
}

func decideOn(changes *engine.Changes) func(*engine.Loaded) (*engine.Changes, error) {
	return func(*engine.Loaded) (*engine.Changes, error) { return changes, nil }
}

// change loads a task and replaces its row by what edit makes of it.
func (d *database) change(t testing.TB, id string, edit func(*engine.Task)) {
	t.Helper()
	require.NoError(t, d.Update(t.Context(), selectTasks(id), func(l *engine.Loaded) (*engine.Changes, error) {
		return &engine.Changes{UpdateTasks: []engine.TaskUpdate{edited(l.Tasks[id], edit)}}, nil
	}))
}

func selectTasks(ids ...string) engine.Selection {
	var sel engine.Selection
	for _, id := range ids {
		sel.Tasks = append(sel.Tasks, engine.TaskKey{ID: id})
	}
	return sel
}

func edited(read *engine.Task, edit func(*engine.Task)) engine.TaskUpdate {
	u := engine.TaskUpdate{ReadVersion: read.Version, ReadLeaseEpoch: read.LeaseEpoch, Task: read}
	edit(read)
	return u
}

func (d *database) task(t testing.TB, id string) *engine.Task {
	t.Helper()
	found, err := d.ReadTasks(t.Context(), engine.Scope{Tenant: tenant}, []string{id}, engine.Detail{})
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0].Task
}

const (
	tenant = "acme"
	agent  = "ledger"
	owner  = "alice"
)

// queuedTask is a task that was just accepted.
func queuedTask(at time.Time) *engine.Task {
	return &engine.Task{
		ID:             uuid.Must(uuid.NewV7()).String(),
		Tenant:         tenant,
		Agent:          agent,
		Owner:          owner,
		ContextID:      "ctx-1",
		CreatedAt:      at,
		State:          a2apb.TaskState_TASK_STATE_SUBMITTED,
		StatusVersion:  1,
		StatusTime:     at,
		Version:        1,
		MessageVersion: 1,
		Phase:          engine.PhaseQueued,
		QueuedAt:       at,
		EnqueueCount:   1,
	}
}

// claim makes a task leased and WORKING.
func claim(t *engine.Task) {
	t.Version++
	t.State, t.StatusVersion = a2apb.TaskState_TASK_STATE_WORKING, t.Version
	t.Phase, t.LeaseEpoch, t.Holder, t.Attempt = engine.PhaseLeased, t.LeaseEpoch+1, "executor-1", 1
	t.TurnStartedAt = t.StatusTime
}

// settle gives a task another state and ends its turn.
func settle(state a2apb.TaskState) func(*engine.Task) {
	return func(t *engine.Task) {
		t.Version++
		t.State, t.StatusVersion, t.HandledVersion = state, t.Version, t.MessageVersion
		t.Phase, t.Holder, t.Attempt, t.TurnStartedAt = engine.PhaseIdle, "", 0, time.Time{}
		switch state {
		case a2apb.TaskState_TASK_STATE_COMPLETED, a2apb.TaskState_TASK_STATE_FAILED,
			a2apb.TaskState_TASK_STATE_CANCELED, a2apb.TaskState_TASK_STATE_REJECTED:
			t.TerminalAt = t.StatusTime
		default:
		}
	}
}

// taskID is a task id that sorts by n.
func taskID(n byte) string { return uuid.UUID{15: n}.String() }
