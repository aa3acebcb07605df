// Package events carries what happens to tasks over NATS: the events of the task
// store's log to whoever watches a task, and control messages to the executor
// that holds one.
//
// Events are on JetStream, as a fast copy of the log that ends after a day. The
// order in which they arrive means nothing and one may be missing: readers order
// by version and take what is missing from the store. Control messages are not
// stored at all; the heartbeat brings the same news later.
package events

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/errandhq/errand/pkg/natsconn"
)

// Stream is the name of the event stream.
const Stream = "ERRAND_EVENTS"

// MaxInline is the size in bytes of an encoded event above which NATS carries
// only its header (without kind), and readers take the event from the store.
const MaxInline = 256 << 10

const (
	eventsPrefix  = "errand.events"
	controlPrefix = "errand.control"

	maxAge          = 24 * time.Hour
	defaultMaxBytes = 1 << 30
	// duplicateWindow covers the time in which two publishers may send the same
	// event: the one that committed it, and the relay that takes over from it.
	duplicateWindow = 2 * time.Minute
)

// StreamConfig has the settings of the event stream.
type StreamConfig struct {
	// MaxBytes bounds the stream on the server's disk; the oldest events make room
	// for new ones. 0 stands for 1 GiB.
	MaxBytes int64
	// Replicas is used when the stream is created; 0 stands for 1.
	Replicas int
}

// EnsureStream creates the event stream, or updates it. A Publisher does it
// itself when the stream has gone.
func EnsureStream(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	spec := natsconn.StreamSpec{
		Name:        Stream,
		Description: "Events of tasks, by tenant and task. A copy; the task store has the log.",
		Subjects:    []string{eventsPrefix + ".*.*"},
		Retention:   jetstream.LimitsPolicy,
		Discard:     jetstream.DiscardOld,
		MaxBytes:    cfg.MaxBytes,
		MaxAge:      maxAge,
		Duplicates:  duplicateWindow,
		Replicas:    cfg.Replicas,
	}
	if spec.MaxBytes == 0 {
		spec.MaxBytes = defaultMaxBytes
	}
	return natsconn.EnsureStream(ctx, js, spec)
}
