package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that decide what becomes of an error.
const (
	codeUniqueViolation      = "23505"
	codeCheckViolation       = "23514"
	codeSerializationFailure = "40001"
	codeDeadlockDetected     = "40P01"
	codeUndefinedTable       = "42P01"
	codeDuplicateTable       = "42P07"
	codeWrongObject          = "42809"
	codeLockNotAvailable     = "55P03"
	codeQueryCanceled        = "57014"
	codeReadOnly             = "25006"
	// A statement that was prepared before is not there, or one is that wasn't.
	codeStatementLost  = "26000"
	codeStatementKnown = "42P05"
	// Raised by the functions and triggers of the schema.
	codeGuardFailed   = "ZE001"
	codeChangeRefused = "ZE002"
)

// Classes of SQLSTATE codes that tell of the server and not of the statement:
// connection exception, transaction rollback, insufficient resources, operator
// intervention, system error.
var serverClasses = []string{"08", "40", "53", "57", "58"}

// ErrReadOnly is an engine.ErrUnavailable: the server takes no writes, as a
// standby does, or a primary that became one.
var ErrReadOnly = fmt.Errorf("%w: the server is read-only", engine.ErrUnavailable)

// ErrPooler says that prepared statements get lost between this program and the
// server.
var ErrPooler = errors.New("a pooler in transaction mode does not track prepared statements: " +
	"add default_query_exec_mode=cache_describe to the database URL")

// sqlState is the code of a server's error, empty for any other error.
func sqlState(err error) string {
	if failure, ok := errors.AsType[*pgconn.PgError](err); ok {
		return failure.Code
	}
	return ""
}

// meaning turns the error of a transaction that changed nothing, or says itself
// that it is in doubt, into what callers decide on. broken tells whether the
// connection is gone.
func meaning(ctx context.Context, err error, broken bool) error {
	code := sqlState(err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, engine.ErrInDoubt):
		return err
	case code == codeGuardFailed, code == codeChangeRefused, code == codeUniqueViolation:
		return fmt.Errorf("%w: %w", engine.ErrConflict, err)
	case code == codeReadOnly:
		return fmt.Errorf("%w: %w", ErrReadOnly, err)
	case code == codeStatementLost, code == codeStatementKnown:
		return fmt.Errorf("%w: %w", ErrPooler, err)
	case code == codeLockNotAvailable:
		return fmt.Errorf("%w: %w", engine.ErrLocked, err)
	case code != "" && slices.Contains(serverClasses, code[:2]),
		code == "" && broken && ctx.Err() == nil:
		return fmt.Errorf("%w: %w", engine.ErrUnavailable, err)
	default:
		return err
	}
}

// worthRetry tells whether the same transaction may well succeed a moment later:
// it lost against another one, or its connection was gone. Whoever waited in vain
// for a lock or for an answer has waited long enough.
func worthRetry(err error) bool {
	waited := errors.Is(err, engine.ErrLocked) || errors.Is(err, context.DeadlineExceeded) || sqlState(err) == codeQueryCanceled
	return errors.Is(err, engine.ErrUnavailable) && !waited
}
