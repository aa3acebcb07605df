package notifier

import (
	"errors"
	"fmt"

	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"

	"github.com/errandhq/errand/pkg/events"
	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/services/notifier/internal/hub"
)

// feed makes a hub.Feed of events on NATS.
type feed struct{ *events.Feed }

func (f feed) Subscribe(tenant, taskID string) (hub.Subscription, error) {
	sub, err := f.Feed.Subscribe(tenant, taskID)
	switch {
	case errors.Is(err, natsconn.ErrBadToken):
		return nil, fmt.Errorf("%w: %w", hub.ErrNoTask, err)
	case err != nil:
		return nil, err
	}
	return sub, nil
}

// deliver breaks the circle: the hub subscribes at the feed that calls it.
func (s *Service) deliver(event *eventv1.Event) { s.hub.Deliver(event) }
