package taskstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/errandhq/errand/services/taskstore/internal/sqlite"
)

// ErrDatabaseURL refuses a URL that names neither of the engines.
var ErrDatabaseURL = errors.New("a database URL is postgres://… or sqlite:PATH")

const sqliteScheme = "sqlite:"

// Transactions that run at the same time. SQLite has one writer; on Postgres a
// few hide each other's round trips, and more would make batches smaller.
const (
	sqliteParallel   = 1
	postgresParallel = 4
)

// Migrate brings a database to the schema that this program needs. It changes
// nothing when that has been done, and may run while stores serve.
func Migrate(ctx context.Context, url string) error {
	path, isSQLite := strings.CutPrefix(url, sqliteScheme)
	switch {
	case isSQLite && path != "":
		return sqlite.Migrate(ctx, path)
	case isPostgres(url):
		return postgres.Migrate(ctx, url)
	default:
		return ErrDatabaseURL
	}
}

// open opens a database and tells how many transactions should run at the same time.
func open(ctx context.Context, cfg Config) (e engine.Engine, parallel int, err error) {
	path, isSQLite := strings.CutPrefix(cfg.DatabaseURL, sqliteScheme)
	switch {
	case isSQLite && path != "":
		e, err = sqlite.Open(ctx, path)
		parallel = sqliteParallel
	case isPostgres(cfg.DatabaseURL):
		e, err = postgres.Open(ctx, cfg.DatabaseURL, postgres.Options{
			TracerProvider: cfg.Telemetry.Tracers, MeterProvider: cfg.Telemetry.Meters, Logger: cfg.Logger,
		})
		parallel = postgresParallel
	default:
		err = ErrDatabaseURL
	}
	if err != nil {
		return nil, 0, fmt.Errorf("open database: %w", err)
	}
	return e, parallel, nil
}

func isPostgres(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}
