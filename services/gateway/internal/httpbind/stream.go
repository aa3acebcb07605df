package httpbind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/sse"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

// Frames are what a binding puts on the data line of an event.
type Frames struct {
	Update func(*a2apb.StreamResponse) ([]byte, error)
	Error  func(error) ([]byte, error)
}

// resync names the event of a snapshot that takes the place of events that the
// client has missed, for clients that look; all others have no name.
const resync = "resync"

// ServeStream writes a stream to its end and closes it. Event ids are versions,
// so that a client can continue with Last-Event-ID.
func ServeStream(w http.ResponseWriter, r *http.Request, stream *operation.Stream, frames Frames, limits config.Limits) {
	defer stream.Close()
	out, err := sse.Start(w, limits.Write.Value())
	for err == nil {
		err = next(r.Context(), out, stream, frames, limits.KeepAlive.Value())
	}
}

// next writes one event: an update, a sign of life, or an error, which is the
// last one. It fails when there is no more to write or nobody to write to.
func next(ctx context.Context, out *sse.Writer, stream *operation.Stream, frames Frames, keepAlive time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, keepAlive)
	defer cancel()
	update, err := stream.Next(waiting)
	switch {
	case err == nil:
		return writeUpdate(ctx, out, update, frames)
	case errors.Is(err, io.EOF), errors.Is(err, operation.ErrStopping), ctx.Err() != nil:
		return io.EOF
	case waiting.Err() != nil:
		return out.Comment("keep-alive")
	}
	return writeError(out, err, frames)
}

func writeUpdate(ctx context.Context, out *sse.Writer, update operation.Update, frames Frames) error {
	data, err := frames.Update(update.Response)
	if err != nil {
		return writeError(out, err, frames)
	}
	done, err := load.Answer(ctx, len(data))
	if err != nil {
		return writeError(out, err, frames)
	}
	defer done()
	event := sse.Event{Data: data}
	if update.Version > 0 {
		event.ID = strconv.FormatInt(update.Version, 10)
	}
	if update.Resync {
		event.Name = resync
	}
	return out.Event(event)
}

func writeError(out *sse.Writer, err error, frames Frames) error {
	data, encodeErr := frames.Error(err)
	if encodeErr != nil {
		return encodeErr
	}
	if writeErr := out.Event(sse.Event{Name: "error", Data: data}); writeErr != nil {
		return writeErr
	}
	return fmt.Errorf("stream ended: %w", err)
}

// LastEventID returns the version after which a stream goes on. What is no
// version of ours is ignored, as browsers send back whatever they got.
func LastEventID(r *http.Request) int64 {
	version, err := strconv.ParseInt(r.Header.Get("Last-Event-ID"), 10, 64)
	if err != nil || version < 0 {
		return operation.Anew
	}
	return version
}
