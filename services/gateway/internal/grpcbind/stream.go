package grpcbind

import (
	"errors"
	"io"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

type streamServer = grpc.ServerStreamingServer[a2apb.StreamResponse]

// errNotReading ends the stream of a client that has stopped to read; one that
// reads again later finds the reason behind what was sent.
var errNotReading = a2aerr.Unavailable("the stream was not read for too long", time.Second)

// forward sends a stream to its end. A client that doesn't read holds up its own
// stream alone, and that no longer than one write may take: what it misses
// meanwhile comes as a snapshot.
//
// A send that waits for its reader ends when the call does, which is when this
// function returns; so the sending has a goroutine of its own.
func forward(stream *operation.Stream, out streamServer, write time.Duration) error {
	defer stream.Close()
	ended := make(chan error, 1)
	stalled := make(chan struct{})
	watchdog := time.AfterFunc(write, func() { close(stalled) })
	watchdog.Stop()
	go func() { ended <- send(stream, out, watchdog, write) }()
	select {
	case err := <-ended:
		return err
	case <-stalled:
		return errNotReading
	}
}

// send sends all updates; the watchdog runs while one is being sent.
func send(stream *operation.Stream, out streamServer, watchdog *time.Timer, write time.Duration) error {
	for {
		update, err := stream.Next(out.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		watchdog.Reset(write)
		err = out.Send(update.Response)
		if !watchdog.Stop() && err == nil {
			return errNotReading // it has just barked
		}
		if err != nil {
			return err
		}
	}
}
