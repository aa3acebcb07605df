package natsconn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// ConsumerSpec is what a program needs of a durable pull consumer of its own.
type ConsumerSpec struct {
	Stream string
	jetstream.ConsumerConfig

	// Revision is that of StreamSpec.
	Revision int
}

// EnsureConsumer creates a consumer, or changes it where it differs; one that
// can't be changed into what is needed is made anew, and what it had delivered
// comes again. On a work queue it takes the place of other consumers of its
// subject. It is safe to call from many processes at once.
func EnsureConsumer(ctx context.Context, js jetstream.JetStream, spec ConsumerSpec) (jetstream.Consumer, error) {
	have, err := js.Consumer(ctx, spec.Stream, spec.Durable)
	switch {
	case errors.Is(err, jetstream.ErrConsumerNotFound), errors.Is(err, jetstream.ErrNotPullConsumer):
	case err != nil:
		return nil, fmt.Errorf("look up consumer %s: %w", spec.Durable, err)
	case revision(have.CachedInfo().Config.Metadata) > spec.Revision, spec.matches(have.CachedInfo().Config):
		return have, nil
	}
	consumer, err := spec.apply(ctx, js)
	if isRefused(err) {
		if err := spec.makeRoom(ctx, js); err != nil {
			return nil, fmt.Errorf("make room for consumer %s: %w", spec.Durable, err)
		}
		consumer, err = spec.apply(ctx, js)
	}
	if err != nil {
		return nil, fmt.Errorf("make consumer %s: %w", spec.Durable, err)
	}
	return consumer, nil
}

func (s ConsumerSpec) apply(ctx context.Context, js jetstream.JetStream) (jetstream.Consumer, error) {
	cfg := s.ConsumerConfig
	cfg.Metadata = withRevision(cfg.Metadata, s.Revision)
	return js.CreateOrUpdateConsumer(ctx, s.Stream, cfg) //nolint:wrapcheck // by EnsureConsumer
}

func (s ConsumerSpec) matches(have jetstream.ConsumerConfig) bool {
	return have.FilterSubject == s.FilterSubject && len(have.FilterSubjects) == 0 &&
		have.AckPolicy == s.AckPolicy && have.DeliverPolicy == s.DeliverPolicy &&
		have.AckWait == s.AckWait && have.MaxDeliver == s.MaxDeliver && len(have.BackOff) == 0 &&
		have.MaxAckPending == s.MaxAckPending && have.InactiveThreshold == s.InactiveThreshold &&
		!have.HeadersOnly && revision(have.Metadata) == s.Revision
}

// makeRoom removes what stands in the way: the consumer itself, when it differs
// in something that no update changes, or one with another name that takes the
// same messages, as a version with other consumers may have left it.
func (s ConsumerSpec) makeRoom(ctx context.Context, js jetstream.JetStream) error {
	stream, err := js.Stream(ctx, s.Stream)
	if err != nil {
		return err //nolint:wrapcheck // by EnsureConsumer
	}
	list := stream.ListConsumers(ctx)
	for info := range list.Info() {
		if info.Name != s.Durable && !s.overlaps(info.Config) {
			continue
		}
		if err := stream.DeleteConsumer(ctx, info.Name); err != nil && !errors.Is(err, jetstream.ErrConsumerNotFound) {
			return fmt.Errorf("remove consumer %s: %w", info.Name, err)
		}
	}
	return list.Err() //nolint:wrapcheck // by EnsureConsumer
}

func (s ConsumerSpec) overlaps(other jetstream.ConsumerConfig) bool {
	filters := other.FilterSubjects
	if len(filters) == 0 {
		filters = []string{other.FilterSubject}
	}
	return slices.ContainsFunc(filters, func(filter string) bool { return covers(filter, s.FilterSubject) })
}

// covers tells whether a filter takes messages of a subject without wildcards.
func covers(filter, subject string) bool {
	if filter == "" {
		return true
	}
	have := strings.Split(subject, ".")
	for i, want := range strings.Split(filter, ".") {
		if want == ">" {
			return i < len(have)
		}
		if i >= len(have) || want != "*" && want != have[i] {
			return false
		}
	}
	return strings.Count(filter, ".") == strings.Count(subject, ".")
}

// isRefused tells whether the server says that it won't, rather than that it
// can't at the moment or that the stream is not there.
func isRefused(err error) bool {
	var refused *jetstream.APIError
	if !errors.As(err, &refused) || errors.Is(err, jetstream.ErrStreamNotFound) {
		return false
	}
	return refused.ErrorCode == jetstream.JSErrCodeConsumerCreate || refused.Code >= 400 && refused.Code < 500
}
