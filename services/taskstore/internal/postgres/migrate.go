package postgres

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"
)

// ErrOldSchema says that migrations are due.
var ErrOldSchema = errors.New("database schema is older than this program needs")

// Migrations are numbered and never edited after a release; a release's program
// also works on the schema of the next one.
//
//go:embed migrations/*.sql
var migrations embed.FS

// The tables in which goose keeps what it did and who does it. The lock is a row
// with a heartbeat: an advisory lock would belong to the pooler's session.
const (
	versionTable = "schema_versions"
	lockTable    = "schema_lock"
)

// SchemaVersion is the version that this program was built for.
var SchemaVersion = sync.OnceValue(func() int64 {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic("no migrations are embedded")
	}
	version, err := goose.NumericComponent(names[len(names)-1])
	if err != nil {
		panic(err)
	}
	return version
})

// Migrate brings the schema to this program's version, and makes room for the
// events of the coming hours. Several processes may call it at once.
func Migrate(ctx context.Context, url string) error {
	cfg, err := pgxpool.ParseConfig(url) // the pool's settings are none of the server's
	if err != nil {
		return fmt.Errorf("parse database URL: %w", err)
	}
	// Statements that run once are not worth preparing, and a pooler between us
	// and the server could lose them.
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	prepare(cfg.ConnConfig)
	db := stdlib.OpenDB(*cfg.ConnConfig)
	defer func() { _ = db.Close() }()

	folder, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	locker, err := lock.NewPostgresTableLocker(
		lock.WithTableName(lockTable),
		lock.WithTableLockTimeout(time.Second, 300),
	)
	if err != nil {
		return fmt.Errorf("make migration lock: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectPostgres, db, folder,
		goose.WithTableName(versionTable),
		goose.WithLocker(locker),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate database: %w", err)
	}
	return makeRoom(ctx, url)
}

// makeRoom makes the partitions of the coming hours, which otherwise is up to the
// reaper, so that the first events need not go to the default partition.
func makeRoom(ctx context.Context, url string) error {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return fmt.Errorf("parse database URL: %w", err)
	}
	cfg.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
	e, err := open(ctx, cfg, Options{})
	if err != nil {
		return err
	}
	defer e.Close()
	tables, err := e.partitions(ctx)
	if err != nil {
		return err
	}
	err = e.makePartitions(ctx, tables, time.Now())
	if errors.Is(err, engine.ErrUnavailable) {
		return nil // somebody is in the way, maybe another migration; the reaper will do
	}
	return err
}
