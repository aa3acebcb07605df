package task

import "github.com/google/uuid"

// NewID makes an id for a task, context or message: a UUID of version 7
// (RFC 9562 §5.7), so that ids made later sort later.
func NewID() string {
	return uuid.Must(uuid.NewV7()).String()
}
