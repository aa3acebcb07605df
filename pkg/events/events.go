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
	"cmp"
	"context"
	"fmt"
	"log/slog"
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

	maxAge = 24 * time.Hour
	// DefaultMaxBytes bounds the stream on the server's disk, maxMsgs bounds what
	// the server remembers of it in memory.
	DefaultMaxBytes = 1 << 30
	maxMsgs         = 10_000_000
	// An event above MaxInline travels by reference.
	maxMsgSize = MaxInline + 16<<10
	// duplicateWindow covers the time in which two publishers may send the same
	// event: the one that committed it, and the relay that takes over from it.
	duplicateWindow = 2 * time.Minute

	// revision grows with each change to the settings of the stream.
	revision = 1
)

// StreamConfig has the settings of the event stream.
type StreamConfig struct {
	// MaxBytes bounds the stream on the server's disk; the oldest events make room
	// for new ones. 0 stands for 1 GiB.
	MaxBytes int64
	// Replicas is on how many NATS servers the stream is kept; 0 leaves that as it
	// is, and stands for 1 in a new stream.
	Replicas int
	// Logger is told when the stream is made anew; nil keeps silent.
	Logger *slog.Logger
}

// EnsureStream creates the event stream, or changes it into what is needed. A
// Publisher does it itself when the stream has gone.
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
		MaxBytes:    cmp.Or(cfg.MaxBytes, DefaultMaxBytes),
		MaxMsgs:     maxMsgs,
		MaxMsgSize:  maxMsgSize,
		MaxAge:      maxAge,
		Duplicates:  duplicateWindow,
		Replicas:    cfg.Replicas,
		Revision:    revision,
		Logger:      cfg.Logger,
	}
	return natsconn.EnsureStream(ctx, js, spec)
}
