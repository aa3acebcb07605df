package postgres

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// fillOld makes 200,000 rows of the table that is purged most and some of the
// others, of which the first few are old.
//
//nolint:dupword // columns with the same value
const fillOld = `
ALTER TABLE dedupe_keys SET (autovacuum_enabled = off);
INSERT INTO dedupe_keys SELECT t, 1, NULL, 'acme', 'alice', 'ledger', i::text, '', 'f' FROM rows;
INSERT INTO direct_messages SELECT t, i::text, 'acme', 'ledger', 'alice', 'c', 'm', 'r' FROM rows WHERE i <= 20000;
INSERT INTO contexts SELECT t, t, t, 0, 'acme', 'alice', 'ledger', i::text FROM rows WHERE i <= 20000;
INSERT INTO events_default SELECT t, gen_random_uuid(), 1, i, 'gone', 'acme', 'e' FROM rows WHERE i <= 60000`

const oldRows = `
CREATE TEMP TABLE rows AS
SELECT i, '2026-01-01'::timestamptz + i * interval '1 second' AS t
FROM generate_series(1, 200000) AS i`

// A purge reads what it deletes and no more, however many rows there are.
func TestPurgingCostsWhatItDeletes(t *testing.T) {
	t.Parallel()
	url := testkit.PostgresFrom(t, "taskstore", func(url string) error { return Migrate(t.Context(), url) })
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer conn.Close(t.Context())
	for _, statements := range []string{oldRows, fillOld} {
		_, err = conn.Exec(t.Context(), statements)
		require.NoError(t, err)
	}
	before := time.Date(2026, 1, 1, 0, 0, 30, 0, time.UTC)
	for _, then := range []string{"SELECT", "ANALYZE"} {
		_, err = conn.Exec(t.Context(), then)
		require.NoError(t, err)
		for _, s := range []*statement{sqlPurgeDedupe, sqlPurgeDirects, sqlPurgeContexts, sqlPurgeDefaultEvents} {
			rows, pages := costs(t, conn, s, withLimit(args{"before": stamp(before)}, 20))
			require.Equal(t, 20, rows, "%s found its rows", s.name)
			require.Less(t, pages, 250, "%s after %s", s.name, then)
		}
	}
}

// costs runs a statement without a lasting effect, and tells how many rows the
// node below its root found and how many pages all of it touched.
func costs(t *testing.T, conn *pgx.Conn, s *statement, a args) (rows, pages int) {
	t.Helper()
	tx, err := conn.Begin(t.Context())
	require.NoError(t, err)
	defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
	_, err = tx.Exec(t.Context(), sqlSteadyPlan.text, sqlSteadyPlan.with(patience(answerTimeout).limits()))
	require.NoError(t, err)
	explained := newStatement(s.name, "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+text(s.name))
	var plan []byte
	require.NoError(t, tx.QueryRow(t.Context(), explained.text, explained.with(a)).Scan(&plan))
	require.NotContains(t, string(plan), "Seq Scan", s.name)
	var read []struct {
		Plan struct {
			Hit   int `json:"Shared Hit Blocks"`
			Read  int `json:"Shared Read Blocks"`
			Plans []struct {
				Rows int `json:"Actual Rows"`
			}
		}
	}
	require.NoError(t, json.Unmarshal(plan, &read))
	plans := read[0].Plan.Plans
	return plans[len(plans)-1].Rows, read[0].Plan.Hit + read[0].Plan.Read
}
