package sqlite

import (
	"context"
	"fmt"
	"net/url"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// readers is how many queries run at the same time. They are short, and each
// connection has a page cache of its own.
const readers = 4

// Engine is a SQLite database.
type Engine struct {
	writer chan *conn
	reader chan *conn
	closed chan struct{}
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
	e := &Engine{writer: make(chan *conn, 1), reader: make(chan *conn, readers), closed: make(chan struct{}), schema: schema}
	if err := e.fill(ctx, path); err != nil {
		e.closeIdle()
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	return e, nil
}

func (e *Engine) fill(ctx context.Context, path string) error {
	writer, err := openConn(ctx, dataSource(path, "cache_size(-32768)"))
	if err != nil {
		return err
	}
	e.writer <- writer
	for range cap(e.reader) {
		reader, err := openConn(ctx, dataSource(path, "cache_size(-8192)", "query_only(1)"))
		if err != nil {
			return err
		}
		e.reader <- reader
	}
	return nil
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
	close(e.closed)
	for range cap(e.reader) {
		(<-e.reader).close()
	}
	(<-e.writer).close()
}

// closeIdle closes what an unfinished Open has opened.
func (e *Engine) closeIdle() {
	for {
		select {
		case c := <-e.reader:
			c.close()
		case c := <-e.writer:
			c.close()
		default:
			return
		}
	}
}

// write runs f in the one transaction that may write.
func (e *Engine) write(ctx context.Context, f func(*conn) error) error {
	return e.use(ctx, e.writer, "BEGIN IMMEDIATE", f)
}

// read runs f at one snapshot.
func (e *Engine) read(ctx context.Context, f func(*conn) error) error {
	return e.use(ctx, e.reader, "BEGIN", f)
}

func (e *Engine) use(ctx context.Context, pool chan *conn, begin string, f func(*conn) error) error {
	select {
	case <-e.closed:
		return fmt.Errorf("%w: closed", engine.ErrUnavailable)
	case c := <-pool:
		defer func() { pool <- c }()
		return c.transact(ctx, begin, f)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
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
