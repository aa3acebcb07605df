package rpcserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/store"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// retryDelay is what callers are asked to wait while the database is away or
// overloaded.
const retryDelay = time.Second

// failure is an error with two faces: the log reads the whole story, the caller
// gets the public one.
type failure struct {
	error
	public *status.Status
}

// GRPCStatus is what gRPC sends.
func (f failure) GRPCStatus() *status.Status { return f.public }

func (f failure) Unwrap() error { return f.error }

// public gives an error its public face. An answer for the sender has one.
func public(err error) error {
	var answer *a2aerr.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return answer
	case errors.Is(err, store.ErrConflict):
		return failure{err, status.New(codes.Aborted, store.ErrConflict.Error())}
	case temporary(err):
		return failure{err, a2aerr.From(a2aerr.Unavailable("the task store is busy", retryDelay)).GRPCStatus()}
	default:
		// The public message has the id by which the log line is found.
		e := a2aerr.From(err)
		return failure{fmt.Errorf("%s: %w", e.Message, err), e.GRPCStatus()}
	}
}

// temporary tells whether the same call may succeed later. A transaction that
// took too long is one of these, though no caller has set its deadline.
func temporary(err error) bool {
	for _, of := range []error{
		engine.ErrUnavailable, engine.ErrInDoubt, engine.ErrConflict, batch.ErrFull, batch.ErrClosed, context.DeadlineExceeded,
	} {
		if errors.Is(err, of) {
			return true
		}
	}
	return false
}
