package grpcbind

import (
	"errors"
	"io"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/services/gateway/internal/load"
	"github.com/errandhq/errand/services/gateway/internal/operation"
)

type streamServer = grpc.ServerStreamingServer[a2apb.StreamResponse]

// errNotReading ends the stream of a client that has stopped to read; one that
// reads again later finds the reason behind what was sent.
var errNotReading = a2aerr.Unavailable("the stream was not read for too long", time.Second)

// forward sends a stream to its end. A client that doesn't read holds up its own
// stream alone, and that no longer than one write may take: what it misses
// meanwhile comes as a snapshot.
func forward(stream *operation.Stream, out streamServer, write time.Duration) error {
	defer stream.Close()
	for {
		update, err := stream.Next(out.Context())
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := send(out, update.Response, write); err != nil {
			return err
		}
	}
}

// send ends the stream when its client doesn't make room in time.
func send(out streamServer, response *a2apb.StreamResponse, write time.Duration) error {
	done, err := load.Answer(out.Context(), proto.Size(response))
	if err != nil {
		return err
	}
	defer done()
	ended := make(chan struct{})
	watchdog := time.AfterFunc(write, func() {
		defer close(ended)
		rpc.End(out.Context(), a2aerr.From(errNotReading).GRPCStatus())
	})
	err = out.Send(response)
	if watchdog.Stop() {
		return err
	}
	<-ended
	return errNotReading
}
