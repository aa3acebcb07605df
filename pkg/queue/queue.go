// Package queue wakes executors: a work queue on JetStream that says which tasks
// are queued, and requests for direct Messages.
//
// A work message is a hint, the task store's claim decides. So a message may be
// lost, late or doubled without harm: the store's reaper sends a lost one again,
// and the claim of a task that isn't queued is refused.
//
// All messages are in one stream with one subject for each agent and tenant.
// An executor asks for no more than it has free slots, and asks the tenants of an
// agent in weighted round robin, so that no tenant waits behind another's
// backlog.
package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/task"
)

// Stream is the name of the work stream.
const Stream = "ERRAND_WORK"

const (
	workPrefix   = "errand.work"
	wakePrefix   = "errand.wake"
	directPrefix = "errand.direct"

	// duplicateWindow is how long a message id is remembered. Ids hold the enqueue
	// count, so only a repeated publish of the same enqueueing is a duplicate.
	duplicateWindow = 2 * time.Minute

	// DefaultMaxBytes has room for some five million work messages, maxMsgs bounds
	// what the server remembers of them in memory.
	DefaultMaxBytes = 1 << 30
	maxMsgs         = 10_000_000
	// A work message names a task: ten times the longest that there is.
	maxMsgSize = 16 << 10
	// maxAge ends what nobody is there to read, such as the messages of an agent
	// that has gone. A task that is still queued then gets a new one.
	maxAge = 7 * 24 * time.Hour

	// revision grows with each change to the settings of the stream and its consumers.
	revision = 1
)

// ErrBadName means that a tenant or agent is not named as those are: lower-case
// letters, digits and '-'.
var ErrBadName = errors.New("want 1 to 100 of a-z, 0-9 and '-'")

// StreamConfig has the settings of the work stream.
type StreamConfig struct {
	// MaxBytes bounds the stream on the server's disk; 0 stands for 1 GiB. Messages
	// beyond it are refused, and sent again by the reaper once there is room.
	MaxBytes int64
	// Replicas is on how many NATS servers the stream is kept; 0 leaves that as it
	// is, and stands for 1 in a new stream.
	Replicas int
	// Logger is told when the stream is made anew; nil keeps silent.
	Logger *slog.Logger
}

// EnsureStream creates the work stream, or changes it into what is needed. A
// Publisher does it itself when the stream has gone.
func EnsureStream(ctx context.Context, nc *nats.Conn, cfg StreamConfig) error {
	js, err := jetstream.New(nc)
	if err != nil {
		return fmt.Errorf("open JetStream: %w", err)
	}
	spec := natsconn.StreamSpec{
		Name:        Stream,
		Description: "Queued tasks, by agent and tenant. Hints only; the task store knows them all.",
		Subjects:    []string{workPrefix + ".*.*"},
		Retention:   jetstream.WorkQueuePolicy,
		// A full queue refuses; dropping the oldest would hide them until the reaper.
		Discard:    jetstream.DiscardNew,
		MaxBytes:   cmp.Or(cfg.MaxBytes, DefaultMaxBytes),
		MaxMsgs:    maxMsgs,
		MaxMsgSize: maxMsgSize,
		MaxAge:     maxAge,
		Duplicates: duplicateWindow,
		Replicas:   cfg.Replicas,
		Revision:   revision,
		Logger:     cfg.Logger,
	}
	return natsconn.EnsureStream(ctx, js, spec)
}

// workSubject names the place of (agent, tenant) in the stream. Names without '_'
// keep the durable consumers' names unambiguous, see consumerName.
func workSubject(agent, tenant string) (string, error) {
	for _, name := range []string{agent, tenant} {
		if !task.ValidName(name) {
			return "", fmt.Errorf("%.*q: %w", task.MaxName, name, ErrBadName)
		}
	}
	return workPrefix + "." + agent + "." + tenant, nil
}

func consumerName(agent, tenant string) string { return agent + "_" + tenant }
