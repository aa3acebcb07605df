package process

import (
	"context"
	"log/slog"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
)

// readinessInterval leaves parts that start out of order the time to find each
// other before a word is said.
const readinessInterval = 2 * time.Second

// logReadiness is a part that logs whenever a process becomes ready or stops
// being so, with the reason: /readyz tells only those who ask.
func logReadiness(logger *slog.Logger, ready func() error) *lifecycle.Loop {
	return lifecycle.NewLoop(func(ctx context.Context) error {
		ticker := time.NewTicker(readinessInterval)
		defer ticker.Stop()
		last := "not asked yet"
		for {
			select {
			case <-ticker.C:
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			last = logChange(ctx, logger, last, ready())
		}
	})
}

func logChange(ctx context.Context, logger *slog.Logger, last string, err error) string {
	now := ""
	if err != nil {
		now = err.Error()
	}
	switch {
	case now == last:
	case err != nil:
		logger.WarnContext(ctx, "not ready", "error", err)
	default:
		logger.InfoContext(ctx, "ready")
	}
	return now
}
