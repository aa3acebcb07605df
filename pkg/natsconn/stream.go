package natsconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// revisionKey is where a stream's metadata has the revision of its settings.
const revisionKey = "errand.revision"

// StreamSpec is what a program needs of a stream. All else (placement, mirrors,
// metadata of others) belongs to the operator and is left as it is on the server.
type StreamSpec struct {
	Name        string
	Description string
	Subjects    []string
	Retention   jetstream.RetentionPolicy
	Discard     jetstream.DiscardPolicy
	// MaxBytes and MaxMsgs bound the stream: the first on disk, the second what
	// the server remembers of it in memory.
	MaxBytes, MaxMsgs int64
	// MaxMsgSize bounds one message, headers included, in bytes.
	MaxMsgSize int32
	MaxAge     time.Duration
	// Duplicates is how long message ids are remembered.
	Duplicates time.Duration
	// Replicas is on how many servers the stream is kept; 0 leaves that as it is,
	// and stands for 1 in a new stream.
	Replicas int
	// Revision grows with each change to what a program asks of the stream. A
	// stream with settings of a later revision is left alone, so that processes of
	// two versions don't change it back and forth.
	Revision int
	// Logger is told when a stream is made anew; nil keeps silent.
	Logger *slog.Logger
}

// EnsureStream creates a stream, or changes it where it differs. A stream that
// can't be changed into what is needed is made anew, and what it held is lost;
// so it is for streams whose messages are known elsewhere too. It is safe to
// call from many processes at once.
func EnsureStream(ctx context.Context, js jetstream.JetStream, spec StreamSpec) error {
	stream, err := js.Stream(ctx, spec.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return createStream(ctx, js, spec)
	}
	if err != nil {
		return fmt.Errorf("look up stream %s: %w", spec.Name, err)
	}
	return changeStream(ctx, js, stream.CachedInfo().Config, spec)
}

func createStream(ctx context.Context, js jetstream.JetStream, spec StreamSpec) error {
	cfg := spec.apply(jetstream.StreamConfig{Storage: jetstream.FileStorage, Retention: spec.Retention})
	cfg.Replicas = max(spec.Replicas, 1)
	_, err := js.CreateStream(ctx, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		// Another process was faster, with settings of its own.
		stream, lookErr := js.Stream(ctx, spec.Name)
		if lookErr != nil {
			return fmt.Errorf("look up stream %s: %w", spec.Name, lookErr)
		}
		return changeStream(ctx, js, stream.CachedInfo().Config, spec)
	}
	if err != nil {
		return fmt.Errorf("create stream %s: %w", spec.Name, err)
	}
	return nil
}

func changeStream(ctx context.Context, js jetstream.JetStream, have jetstream.StreamConfig, spec StreamSpec) error {
	if revision(have.Metadata) > spec.Revision {
		return nil
	}
	if conflicts := spec.conflicts(have); len(conflicts) > 0 {
		return replaceStream(ctx, js, spec, conflicts)
	}
	if !spec.matches(have) {
		if _, err := js.UpdateStream(ctx, spec.apply(have)); err != nil {
			return fmt.Errorf("update stream %s: %w", spec.Name, err)
		}
	}
	if spec.Replicas == 0 || spec.Replicas == have.Replicas {
		return nil
	}
	// By itself, as it depends on the servers that are there; the rest does not.
	cfg := spec.apply(have)
	cfg.Replicas = spec.Replicas
	if _, err := js.UpdateStream(ctx, cfg); err != nil {
		return fmt.Errorf("keep stream %s on %d servers: %w", spec.Name, spec.Replicas, err)
	}
	return nil
}

// replaceStream makes a stream anew. When several processes do, one may take away
// the new stream of another; its messages are then lost like the old one's.
func replaceStream(ctx context.Context, js jetstream.JetStream, spec StreamSpec, conflicts []string) error {
	if spec.Logger != nil {
		spec.Logger.WarnContext(ctx, "making a stream anew that can't be changed; what it held is sent again",
			"stream", spec.Name, "differs", strings.Join(conflicts, ", "))
	}
	if err := js.DeleteStream(ctx, spec.Name); err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("remove stream %s: %w", spec.Name, err)
	}
	return createStream(ctx, js, spec)
}

// conflicts lists the settings that no update can change.
func (s StreamSpec) conflicts(have jetstream.StreamConfig) []string {
	var list []string
	if have.Retention != s.Retention {
		list = append(list, fmt.Sprintf("retention is %v, not %v", have.Retention, s.Retention))
	}
	if have.Storage != jetstream.FileStorage {
		list = append(list, fmt.Sprintf("storage is %v, not %v", have.Storage, jetstream.FileStorage))
	}
	if have.Sealed {
		list = append(list, "it is sealed")
	}
	if have.DenyDelete || have.DenyPurge {
		list = append(list, "it denies removing messages")
	}
	return list
}

func (s StreamSpec) matches(have jetstream.StreamConfig) bool {
	return slices.Equal(have.Subjects, s.Subjects) && have.Description == s.Description &&
		have.Discard == s.Discard && !have.DiscardNewPerSubject && !have.NoAck &&
		have.MaxBytes == s.MaxBytes && have.MaxMsgs == s.MaxMsgs && have.MaxMsgsPerSubject <= 0 &&
		have.MaxMsgSize == s.MaxMsgSize && have.MaxAge == s.MaxAge && have.Duplicates == s.Duplicates &&
		revision(have.Metadata) == s.Revision
}

func (s StreamSpec) apply(cfg jetstream.StreamConfig) jetstream.StreamConfig {
	cfg.Name = s.Name
	cfg.Description = s.Description
	cfg.Subjects = s.Subjects
	cfg.Discard = s.Discard
	cfg.DiscardNewPerSubject = false
	cfg.NoAck = false
	cfg.MaxBytes = s.MaxBytes
	cfg.MaxMsgs = s.MaxMsgs
	cfg.MaxMsgsPerSubject = -1
	cfg.MaxMsgSize = s.MaxMsgSize
	cfg.MaxAge = s.MaxAge
	cfg.Duplicates = s.Duplicates
	cfg.Metadata = withRevision(cfg.Metadata, s.Revision)
	return cfg
}

// revision reads whose settings a stream or a consumer has; 0 if of no known one.
func revision(metadata map[string]string) int {
	n, err := strconv.Atoi(metadata[revisionKey])
	if err != nil {
		return 0
	}
	return n
}

func withRevision(metadata map[string]string, n int) map[string]string {
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]string{}
	}
	metadata[revisionKey] = strconv.Itoa(n)
	return metadata
}
