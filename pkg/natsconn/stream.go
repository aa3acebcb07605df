package natsconn

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// ErrStreamConflict means that a stream on the server differs in something that
// cannot be changed while it exists.
var ErrStreamConflict = errors.New("the stream cannot be changed into what is needed")

// StreamSpec is what a program needs of a stream. All else (replicas, placement,
// mirrors) belongs to the operator and is left as it is on the server.
type StreamSpec struct {
	Name        string
	Description string
	Subjects    []string
	Retention   jetstream.RetentionPolicy
	Discard     jetstream.DiscardPolicy
	// MaxBytes bounds the stream on disk; MaxAge, if set, its messages' age.
	MaxBytes int64
	MaxAge   time.Duration
	// Duplicates is how long message ids are remembered.
	Duplicates time.Duration
	// Replicas is used when the stream is created; 0 stands for 1.
	Replicas int
}

// EnsureStream creates a stream, or updates it where it differs. It is safe to
// call from many processes at once.
func EnsureStream(ctx context.Context, js jetstream.JetStream, spec StreamSpec) error {
	stream, err := js.Stream(ctx, spec.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return createStream(ctx, js, spec)
	}
	if err != nil {
		return fmt.Errorf("look up stream %s: %w", spec.Name, err)
	}
	return updateStream(ctx, js, stream.CachedInfo().Config, spec)
}

func createStream(ctx context.Context, js jetstream.JetStream, spec StreamSpec) error {
	cfg := spec.apply(jetstream.StreamConfig{Storage: jetstream.FileStorage, Replicas: max(spec.Replicas, 1)})
	cfg.Retention = spec.Retention
	_, err := js.CreateStream(ctx, cfg)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		// Another process was faster, with settings of its own.
		stream, lookErr := js.Stream(ctx, spec.Name)
		if lookErr != nil {
			return fmt.Errorf("look up stream %s: %w", spec.Name, lookErr)
		}
		return updateStream(ctx, js, stream.CachedInfo().Config, spec)
	}
	if err != nil {
		return fmt.Errorf("create stream %s: %w", spec.Name, err)
	}
	return nil
}

func updateStream(ctx context.Context, js jetstream.JetStream, have jetstream.StreamConfig, spec StreamSpec) error {
	if conflicts := spec.conflicts(have); len(conflicts) > 0 {
		return fmt.Errorf("stream %s: %w: %s; remove the stream to have it made anew (the store knows all that is in it)",
			spec.Name, ErrStreamConflict, strings.Join(conflicts, ", "))
	}
	if spec.matches(have) {
		return nil
	}
	if _, err := js.UpdateStream(ctx, spec.apply(have)); err != nil {
		return fmt.Errorf("update stream %s: %w", spec.Name, err)
	}
	return nil
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
	return list
}

func (s StreamSpec) matches(have jetstream.StreamConfig) bool {
	return strings.Join(have.Subjects, " ") == strings.Join(s.Subjects, " ") &&
		have.Description == s.Description && have.Discard == s.Discard &&
		have.MaxBytes == s.MaxBytes && have.MaxAge == s.MaxAge && have.Duplicates == s.Duplicates
}

func (s StreamSpec) apply(cfg jetstream.StreamConfig) jetstream.StreamConfig {
	cfg.Name = s.Name
	cfg.Description = s.Description
	cfg.Subjects = s.Subjects
	cfg.Discard = s.Discard
	cfg.MaxBytes = s.MaxBytes
	cfg.MaxAge = s.MaxAge
	cfg.Duplicates = s.Duplicates
	return cfg
}
