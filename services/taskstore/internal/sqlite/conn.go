package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/ncruces/go-sqlite3"
)

// conn is one connection with its prepared statements. It isn't safe for
// concurrent use.
type conn struct {
	db         *sqlite3.Conn
	statements map[string]*sqlite3.Stmt
}

func openConn(ctx context.Context, source string) (*conn, error) {
	db, err := sqlite3.OpenContext(ctx, source)
	if err != nil {
		return nil, translate(err)
	}
	return &conn{db: db, statements: map[string]*sqlite3.Stmt{}}, nil
}

// close has nothing to report: what was committed is on disk.
func (c *conn) close() {
	for _, s := range c.statements {
		_ = s.Close()
	}
	_ = c.db.Close()
}

// transact runs f between begin and COMMIT. Whatever fails, nothing is changed.
func (c *conn) transact(ctx context.Context, begin string, f func(*conn) error) (err error) {
	c.db.SetInterrupt(ctx)
	defer func() {
		c.db.SetInterrupt(context.Background())
		if errors.Is(err, sqlite3.INTERRUPT) && ctx.Err() != nil {
			err = fmt.Errorf("interrupted: %w", context.Cause(ctx))
		}
		// A panic of f must not leave the connection in a transaction either.
		if !c.db.GetAutocommit() {
			if _, rollbackErr := c.exec("ROLLBACK"); rollbackErr != nil {
				err = errors.Join(err, fmt.Errorf("roll back: %w", rollbackErr))
			}
		}
	}()
	if _, err := c.exec(begin); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	if err := f(c); err != nil {
		return err
	}
	if _, err := c.exec("COMMIT"); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	return nil
}

// exec runs a statement and tells how many rows it changed.
func (c *conn) exec(sql string, args ...any) (int64, error) {
	s, err := c.prepare(sql, args)
	if err != nil {
		return 0, err
	}
	if err := s.Exec(); err != nil {
		return 0, translate(err)
	}
	return c.db.Changes(), nil
}

// query calls each for every row of the result.
func (c *conn) query(sql string, each func(*row) error, args ...any) error {
	s, err := c.prepare(sql, args)
	if err != nil {
		return err
	}
	defer s.Reset() //nolint:errcheck // repeats the error of Step
	for s.Step() {
		if err := each(&row{stmt: s}); err != nil {
			return err
		}
	}
	return translate(s.Err())
}

func (c *conn) prepare(sql string, args []any) (*sqlite3.Stmt, error) {
	s := c.statements[sql]
	if s == nil {
		var err error
		if s, _, err = c.db.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return nil, translate(err)
		}
		c.statements[sql] = s
	}
	for i, arg := range args {
		if err := bind(s, i+1, arg); err != nil {
			return nil, translate(err)
		}
	}
	return s, nil
}

func bind(s *sqlite3.Stmt, i int, arg any) error {
	switch v := arg.(type) {
	case string:
		return s.BindText(i, v)
	case int64:
		return s.BindInt64(i, v)
	case int:
		return s.BindInt(i, v)
	case []byte:
		if v == nil {
			return s.BindNull(i)
		}
		return s.BindBlob(i, v)
	case time.Time:
		if v.IsZero() {
			return s.BindNull(i)
		}
		return s.BindInt64(i, v.UnixMilli())
	case nil:
		return s.BindNull(i)
	default:
		return fmt.Errorf("no SQLite type for %T", arg)
	}
}

// row reads the columns of one row, left to right.
type row struct {
	stmt *sqlite3.Stmt
	next int
}

func (r *row) column() int {
	r.next++
	return r.next - 1
}

func (r *row) text() string { return r.stmt.ColumnText(r.column()) }

func (r *row) int() int64 { return r.stmt.ColumnInt64(r.column()) }

func (r *row) state() a2apb.TaskState {
	return a2apb.TaskState(r.int()) //nolint:gosec // checked by the schema
}

// blob is nil for NULL.
func (r *row) blob() []byte {
	i := r.column()
	if r.stmt.ColumnType(i) == sqlite3.NULL {
		return nil
	}
	return r.stmt.ColumnBlob(i, []byte{})
}

// time is zero for NULL.
func (r *row) time() time.Time {
	i := r.column()
	if r.stmt.ColumnType(i) == sqlite3.NULL {
		return time.Time{}
	}
	return time.UnixMilli(r.stmt.ColumnInt64(i)).UTC()
}
