package postgres

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// fillTables makes {{rows}} tasks of one agent, nearly all completed, and few of
// everything else.
const fillTables = `
INSERT INTO tasks (
    id, tenant, agent, owner, context_id, created_at, state, status_version, status_time, version, message_version,
    handled_version, content_bytes, terminal_at, phase, queued_at, due_at, enqueue_count, lease_epoch, write_seq, holder,
    attempt, turn_started_at, traceparent)
SELECT gen_random_uuid(), 'acme', 'ledger', 'owner-' || i % 50, 'context-' || i % 5000, t, state, 1, t, 1, 1, 1, 0,
    CASE WHEN state = 3 THEN t END, phase, CASE WHEN phase = 1 THEN t END, CASE WHEN i % 1000 = 1 THEN t END, 1, 1, 0,
    CASE WHEN phase = 2 THEN 'e' ELSE '' END, 0, CASE WHEN phase = 2 THEN t END, ''
FROM (
    SELECT i, '2026-01-01'::timestamptz + i * interval '1 second' AS t,
        CASE i % 1000 WHEN 0 THEN 6 WHEN 1 THEN 1 WHEN 2 THEN 1 WHEN 3 THEN 2 ELSE 3 END AS state,
        CASE i % 1000 WHEN 1 THEN 1 WHEN 2 THEN 1 WHEN 3 THEN 2 ELSE 0 END AS phase
    FROM generate_series(1, {{rows}}) AS i
) AS rows;
INSERT INTO messages SELECT id, 1, 1, 'm' FROM tasks;
INSERT INTO artifact_chunks SELECT id, v, 1, v, 'a', 'c' FROM tasks, generate_series(1, 1) AS v;
INSERT INTO events SELECT t, id, 1, row_number() OVER (), 'store', 'acme', 'e' FROM (SELECT id, now() AS t FROM tasks) AS rows;
INSERT INTO dedupe_keys SELECT created_at, 1, id, 'acme', owner, 'ledger', id::text, '', 'f' FROM tasks;
INSERT INTO direct_messages SELECT created_at, id::text, 'acme', 'ledger', owner, context_id, 'm', 'r' FROM tasks;
INSERT INTO contexts SELECT created_at, status_time, coalesce(terminal_at, status_time), 0, 'acme', owner, 'ledger', id::text FROM tasks;
INSERT INTO dead_letters SELECT created_at, id, 1, 'acme', 'ledger', 'r' FROM tasks;
INSERT INTO publishers VALUES ('store', 0, now())`

// The plans that a connection keeps, made for any argument, must find few of many
// rows by an index, and a page's order in one. So must those that are made before
// the server has looked at the tables.
func TestStatementsThatRunOftenUseTheirIndexes(t *testing.T) {
	t.Parallel()
	for name, analyze := range map[string]string{
		"with statistics":    "ANALYZE",
		"without statistics": "ALTER TABLE tasks SET (autovacuum_enabled = off)",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			eachPlan(t, 30_000, analyze, func(c planned, plan string) {
				for _, index := range c.indexes {
					assert.Contains(t, plan, index, "%s", c.statement.name)
				}
			})
		})
	}
}

// A plan is kept long after its tables have grown, so that of a small table must
// not read all of it either.
func TestPlansMadeForSmallTablesReadNoWholeTable(t *testing.T) {
	t.Parallel()
	eachPlan(t, 20, "ANALYZE", func(planned, string) {})
}

// planned is a statement with the indexes that it needs.
type planned struct {
	statement *statement
	indexes   []string
}

// plans are the statements that run often, by the settings under which they do.
func plans() map[*statement][]planned {
	e := &Engine{}
	list := func(f filters) *statement { f.agent = true; return e.listing(f).page.tasks }
	return map[*statement][]planned{
		sqlGuard: {
			{sqlLockTasks, []string{"tasks_pkey"}},
			{sqlUpdateTasks, []string{"tasks_pkey"}},
			{sqlLoadDedupe, []string{"dedupe_keys_pkey"}},
			{sqlUpdateDedupe, []string{"dedupe_keys_pkey"}},
			{sqlDeleteDedupe, []string{"dedupe_keys_pkey"}},
			{sqlLoadArtifacts, []string{"artifact_chunks_pkey"}},
			{sqlDeleteArtifacts, []string{"artifact_chunks_pkey"}},
			{sqlLockContexts, []string{"contexts_pkey"}},
			{sqlLockLeases, []string{"leases_pkey"}},
			{sqlLockDeadLetters, []string{"dead_letters_pkey"}},
			{sqlRedriveDeadLetters, []string{"dead_letters_pkey"}},
		},
		sqlSteadyPlan: {
			{sqlRenewLeases, []string{"leases_pkey", "tasks_pkey"}},
			{sqlReadHeads, []string{"tasks_pkey"}},
			{sqlReadEvents, []string{"_pkey on events_default"}},
			{sqlReadOutbox, []string{"publisher_publish_seq_idx on events_default"}},
			{sqlOutboxLag, []string{"publisher_publish_seq_idx on events_default"}},
			{sqlReadUserMessages, []string{"messages_pkey"}},
			{sqlReadContextTasks, []string{"tasks_by_context"}},
			{sqlReadContextDirects, []string{"direct_messages_by_context"}},
			{pageByID.tasks, []string{"tasks_pkey"}},
			{pageByID.messages, []string{"tasks_pkey", "messages_pkey"}},
			{pageByID.chunks, []string{"tasks_pkey", "artifact_chunks_pkey"}},
			{sqlReadHead, []string{"tasks_pkey"}},
			{sqlQueues, []string{"tasks_queued"}},
			{sqlOldestQueued, []string{"tasks_queued"}},
			{sqlDueTasks, []string{"tasks_delayed"}},
			{sqlUnsettledAgents, []string{"tasks_parked", "tasks_running"}},
			{sqlParkedTasks, []string{"tasks_parked"}},
			{sqlOverrunTasks, []string{"tasks_running"}},
			{sqlPurgeDedupe, []string{"dedupe_keys_by_age", "dedupe_keys_pkey", "tasks_pkey"}},
			{sqlPurgeDirects, []string{"direct_messages_by_age"}},
			{sqlPurgeContexts, []string{"contexts_by_expiry"}},
			{sqlListDeadLetters, []string{"dead_letters_by_age"}},
			{sqlPurgeDeadLetters, []string{"dead_letters_by_age", "dead_letters_pkey"}},
			{sqlReadDeadLetter, []string{"dead_letters_pkey"}},
		},
		sqlSteadyPage: {
			{list(filters{}), []string{"tasks_by_status_time"}},
			{list(filters{after: true, since: true}), []string{"tasks_by_status_time"}},
			{list(filters{owner: true, after: true}), []string{"tasks_by_owner"}},
			{list(filters{context: true, after: true}), []string{"tasks_by_context"}},
			{list(filters{state: true, after: true}), []string{"tasks_by_state"}},
			{e.listing(filters{agent: true, context: true}).page.messages, []string{"tasks_by_context", "messages_pkey"}},
			{e.listing(filters{agent: true, state: true}).count, []string{"tasks_by_state"}},
		},
	}
}

// eachPlan calls look with the plan of each statement, none of which reads a whole
// table. There are so many tasks.
func eachPlan(t *testing.T, tasks int, analyze string, look func(c planned, plan string)) {
	t.Helper()
	url := testkit.PostgresFrom(t, "taskstore", func(url string) error { return Migrate(t.Context(), url) })
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	fill := strings.ReplaceAll(fillTables, "{{rows}}", strconv.Itoa(tasks))
	_, err = conn.Exec(t.Context(), analyze+";"+fill+";"+analyze)
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "SET plan_cache_mode = force_generic_plan")
	require.NoError(t, err)
	for settings, statements := range plans() {
		for _, c := range statements {
			plan := explain(t, conn, settings, c.statement)
			look(c, plan)
			require.NotRegexp(t, `Seq Scan on (tasks|messages|artifact_chunks|dedupe_keys|contexts|events|dead_letters)`, plan, c.statement.name)
		}
	}
}

// explain is the plan that is kept for a statement.
func explain(t *testing.T, conn *pgx.Conn, settings, s *statement) string {
	t.Helper()
	_, err := conn.Exec(t.Context(), "DEALLOCATE ALL")
	require.NoError(t, err)
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	limits := patience(answerTimeout).limits()
	if settings == sqlGuard {
		limits = patience(answerTimeout).guards(1)
	}
	_, err = tx.Exec(t.Context(), settings.text, pgx.QueryExecModeExec, settings.with(limits))
	require.NoError(t, err)
	_, err = conn.Exec(t.Context(), "PREPARE explained AS "+s.text)
	require.NoError(t, err, s.name)
	call := "EXECUTE explained"
	if n := len(s.params); n > 0 {
		call += "(" + strings.TrimSuffix(strings.Repeat("NULL, ", n), ", ") + ")"
	}
	rows, err := conn.Query(t.Context(), "EXPLAIN "+call, pgx.QueryExecModeSimpleProtocol)
	require.NoError(t, err, s.name)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err, fmt.Sprint(s.name, s.params))
	return strings.Join(lines, "\n")
}
