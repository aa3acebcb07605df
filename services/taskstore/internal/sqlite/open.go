package sqlite

import (
	"context"
	"fmt"
	"net/url"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// readers is how many queries run at the same time. They are short, and each
// connection has a page cache of its own.
const readers = 4

// Sizes of page caches in KiB; what isn't needed is not taken.
const (
	writerCache = "cache_size(-32768)"
	readerCache = "cache_size(-16384)"
)

// Engine is a SQLite database.
type Engine struct {
	writer *pool
	// Held by the one write that waits for the writer or has it, heartbeats apart:
	// they are never behind more than the write that runs.
	turn   chan struct{}
	reader *pool
	// Of the newest migration that this program knows.
	schema int64
}

var _ engine.Engine = (*Engine)(nil)

// Open opens the database file at path, which [Migrate] has made. Another
// process may have it open too, as a backup or a shell does; two task stores on
// one file would wait for each other.
func Open(ctx context.Context, path string) (*Engine, error) {
	schema, err := newestMigration()
	if err != nil {
		return nil, err
	}
	writer, err := openPool(ctx, 1, dataSource(path, writerCache))
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	reader, err := openPool(ctx, readers, dataSource(path, readerCache, "query_only(1)"))
	if err != nil {
		writer.close()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return &Engine{writer: writer, turn: make(chan struct{}, 1), reader: reader, schema: schema}, nil
}

// Ping reads the schema's version through a reader.
func (e *Engine) Ping(ctx context.Context) error {
	var version int64
	err := e.read(ctx, func(c *conn) error {
		return c.query(`SELECT max(version_id) FROM goose_db_version WHERE is_applied = 1`, func(r *row) error {
			version = r.int()
			return nil
		})
	})
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if version != e.schema {
		return fmt.Errorf("the schema has version %d, this program needs %d: run the migration", version, e.schema)
	}
	return nil
}

// Close waits for what runs and closes the file; what comes later fails. The
// writer is last, so that it leaves the file without a log beside it.
func (e *Engine) Close() {
	e.reader.close()
	e.writer.close()
}

// Now implements engine.Engine: a file has no clock but its process's.
func (e *Engine) Now(context.Context) (time.Time, error) { return time.Now(), nil }

// write runs f in the one transaction that may write, after those that came before.
func (e *Engine) write(ctx context.Context, f func(*conn) error) error {
	select {
	case e.turn <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-e.turn }()
	return e.writeNext(ctx, f)
}

// writeNext is write before all that wait: what it does is short, and must not be
// late.
func (e *Engine) writeNext(ctx context.Context, f func(*conn) error) error {
	return e.writer.use(ctx, func(c *conn) error { return c.transact(ctx, "BEGIN IMMEDIATE", f) })
}

// read runs f at one snapshot.
func (e *Engine) read(ctx context.Context, f func(*conn) error) error {
	return e.reader.use(ctx, func(c *conn) error { return c.transact(ctx, "BEGIN", f) })
}

// dataSource is the URI of a database file. The order of the first two pragmas
// matters: switching to WAL may have to wait for a lock.
func dataSource(path string, pragmas ...string) string {
	values := url.Values{"_pragma": append([]string{
		"busy_timeout(5000)",
		"journal_mode(WAL)",
		"synchronous(FULL)",
		"foreign_keys(1)",
	}, pragmas...)}
	return (&url.URL{Scheme: "file", Opaque: (&url.URL{Path: path}).EscapedPath(), RawQuery: values.Encode()}).String()
}
