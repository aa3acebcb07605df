package sqlite

import (
	"context"
	"embed"
	"fmt"
	"io/fs"

	"github.com/ncruces/go-sqlite3/driver"
	"github.com/pressly/goose/v3"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrate brings the file at path to the newest schema, making it if need be.
// It may run while another program has the file open.
func Migrate(ctx context.Context, path string) (err error) {
	db, err := driver.Open(dataSource(path))
	if err != nil {
		return fmt.Errorf("open %s: %w", path, translate(err))
	}
	defer func() {
		if closeErr := db.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close %s: %w", path, translate(closeErr))
		}
	}()
	db.SetMaxOpenConns(1)
	numbered, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return fmt.Errorf("find migrations: %w", err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, numbered, goose.WithDisableGlobalRegistry(true))
	if err != nil {
		return fmt.Errorf("read migrations: %w", err)
	}
	if _, err := provider.Up(ctx); err != nil {
		return fmt.Errorf("migrate %s: %w", path, err)
	}
	return nil
}

// newestMigration is the version that [Migrate] leads to.
func newestMigration() (int64, error) {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		return 0, fmt.Errorf("find migrations: %w", err)
	}
	var newest int64
	for _, name := range files {
		version, err := goose.NumericComponent(name)
		if err != nil {
			return 0, fmt.Errorf("number of migration %s: %w", name, err)
		}
		newest = max(newest, version)
	}
	return newest, nil
}
