// Package failure turns an error of a request into what its sender sees, and
// logs what the sender must not see.
package failure

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// Report returns the public form of err, nil for nil, and logs it once: what is
// broken here as an error, what is out of reach as a warning, and what the
// sender did wrong for debugging only. Contents of requests are never logged.
func Report(ctx context.Context, logger *slog.Logger, operation string, err error) *a2aerr.Error {
	if err == nil {
		return nil
	}
	public := a2aerr.From(err)
	logger.Log(ctx, level(public), "request failed",
		"operation", operation, "reason", public.Reason, "error_id", public.ID(), "error", detail(err, public))
	return public
}

func level(e *a2aerr.Error) slog.Level {
	switch e.Code {
	case codes.Internal:
		return slog.LevelError
	case codes.Unavailable, codes.DeadlineExceeded:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}

// detail prefers what the public form hides.
func detail(err error, public *a2aerr.Error) error {
	if cause := errors.Unwrap(public); cause != nil {
		return cause
	}
	return err
}
