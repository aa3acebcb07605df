package taskstore

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/queue"
)

// Streams has the settings of the streams on JetStream, as flags of a program
// too. The task store that started last has its way with them.
type Streams struct {
	// Bytes on each server's disk; 0 stands for 1 GiB.
	WorkMaxBytes   int64 `name:"work-max-bytes" help:"Bound of the work queue on the disk of NATS, in bytes. Beyond it tasks wait in the database until there is room; 1 GiB if not given." env:"ERRAND_WORK_MAX_BYTES" placeholder:"BYTES"`
	EventsMaxBytes int64 `name:"events-max-bytes" help:"Bound of the events on the disk of NATS, in bytes. Beyond it the oldest go, which the database keeps; 1 GiB if not given." env:"ERRAND_EVENTS_MAX_BYTES" placeholder:"BYTES"`
	// Servers that keep each stream; 0 leaves that as it is.
	Replicas int `name:"nats-replicas" help:"NATS servers that keep each stream, 1 to 5; new streams are kept on 1 and others left as they are if not given." env:"ERRAND_NATS_REPLICAS" placeholder:"N"`
}

const (
	// Less than this is a mistake in the unit.
	minStreamBytes = 1 << 20
	// What NATS can do.
	maxReplicas = 5
)

func (s Streams) check() error {
	for name, bytes := range map[string]int64{"work queue": s.WorkMaxBytes, "events": s.EventsMaxBytes} {
		if bytes != 0 && bytes < minStreamBytes {
			return fmt.Errorf("%d bytes for the %s: want %d or more", bytes, name, minStreamBytes)
		}
	}
	if s.Replicas < 0 || s.Replicas > maxReplicas {
		return fmt.Errorf("%d replicas of the streams: want 1 to %d", s.Replicas, maxReplicas)
	}
	return nil
}

// addStreams builds what speaks to JetStream.
func (s *Service) addStreams() (*queue.Publisher, *events.Publisher, error) {
	meter, nc := s.cfg.Telemetry.Meter(), s.cfg.NATS
	ofWork := queue.StreamConfig{MaxBytes: s.cfg.Streams.WorkMaxBytes, Replicas: s.cfg.Streams.Replicas, Logger: s.cfg.Logger}
	ofEvents := events.StreamConfig{MaxBytes: s.cfg.Streams.EventsMaxBytes, Replicas: s.cfg.Streams.Replicas, Logger: s.cfg.Logger}
	s.Add("streams", natsconn.NewUpkeep(s.cfg.Logger,
		func(ctx context.Context) error { return queue.EnsureStream(ctx, nc, ofWork) },
		func(ctx context.Context) error { return events.EnsureStream(ctx, nc, ofEvents) },
	))
	purger, err := events.NewPurger(nc, events.PurgerConfig{Logger: s.cfg.Logger, Meter: meter})
	if err != nil {
		return nil, nil, fmt.Errorf("build purger of events: %w", err)
	}
	s.Add("purger of events", purger)
	published, err := events.NewPublisher(nc, events.PublisherConfig{Stream: ofEvents, Purger: purger, Meter: meter})
	if err != nil {
		return nil, nil, fmt.Errorf("build publisher of events: %w", err)
	}
	work, err := queue.NewPublisher(nc, queue.PublisherConfig{Stream: ofWork, Meter: meter})
	if err != nil {
		return nil, nil, fmt.Errorf("build publisher of work: %w", err)
	}
	return work, published, nil
}
