// Package storetest is the contract of the task store as tests: each sentence
// that package store or package engine promises is a case, run over the store
// and a real database. An engine's own test opens it and calls [Run].
package storetest

import (
	"context"
	"testing"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// Database is one database under test, migrated and open. The suite's cases
// share it and keep apart by their tenants.
type Database struct {
	Engine engine.Engine
	// Transactions that run at the same time.
	Parallel int
	// Exec runs SQL beside the engine, to try what no statement of it would do.
	Exec func(ctx context.Context, sql string) error
	// Settle, for benchmarks, waits for what a database does by itself after many
	// rows came; nil for one that does nothing.
	Settle func(ctx context.Context) error
}

// Run runs the whole contract over the database that open returns.
func Run(t *testing.T, open func(t *testing.T) Database) {
	t.Helper()
	db := open(t)
	for name, cases := range map[string]map[string]func(*fixture){
		"accept":    acceptCases,
		"follow up": followCases,
		"reply":     replyCases,
		"cancel":    cancelCases,
		"claim":     claimCases,
		"lease":     leaseCases,
		"lapse":     lapseCases,
		"clock":     clockCases,
		"write":     writeCases,
		"artifact":  artifactCases,
		"park":      parkCases,
		"final":     finalCases,
		"expire":    expireCases,
		"dead":      deadLetterCases,
		"redrive":   redriveCases,
		"get":       getCases,
		"list":      listCases,
		"events":    eventCases,
		"context":   contextCases,
		"scope":     scopeCases,
		"batch":     batchCases,
		"race":      raceCases,
		"outbox":    outboxCases,
		"keeping":   keepingCases,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, run := range cases {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					run(newFixture(t, db))
				})
			}
		})
	}
}
