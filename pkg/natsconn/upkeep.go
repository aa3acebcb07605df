package natsconn

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/errandhq/errand/pkg/lifecycle"
)

const (
	upkeepTimeout  = 10 * time.Second
	upkeepRetryMin = 200 * time.Millisecond
	upkeepRetryMax = 30 * time.Second
)

// NewUpkeep returns a loop that brings streams to their settings once, as soon as
// NATS lets it. Once is enough, and keeps processes with different settings from
// changing a stream in turns: the one that started last has its way.
func NewUpkeep(logger *slog.Logger, ensure ...func(ctx context.Context) error) *lifecycle.Loop {
	return lifecycle.NewLoop(func(ctx context.Context) error {
		var streams sync.WaitGroup
		for _, one := range ensure {
			streams.Go(func() { keepTrying(ctx, logger, one) })
		}
		streams.Wait()
		<-ctx.Done()
		return nil
	})
}

func keepTrying(ctx context.Context, logger *slog.Logger, ensure func(ctx context.Context) error) {
	for pause := upkeepRetryMin; ctx.Err() == nil; pause = min(2*pause, upkeepRetryMax) {
		limited, cancel := context.WithTimeout(ctx, upkeepTimeout)
		err := ensure(limited)
		cancel()
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			logger.WarnContext(ctx, "a stream does not have its settings yet", "retry_in", pause, "error", Reason(err))
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
		}
	}
}
