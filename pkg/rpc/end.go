package rpc

import (
	"context"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
)

// End ends a stream of a Server with a status while its handler still runs, and
// with it a send that waits for its reader. gRPC itself would do both only when the
// handler returns, which must not happen before its sends have ended. The handler
// has to return soon; its own status goes nowhere.
func End(ctx context.Context, with *status.Status) {
	// What a handler that returns does too; gRPC's transport has it for several
	// goroutines, as a stream may also end from outside at any moment.
	if stream, ok := grpc.ServerTransportStreamFromContext(ctx).(interface{ WriteStatus(*status.Status) error }); ok {
		_ = stream.WriteStatus(with) // who is gone needs none
	}
}
