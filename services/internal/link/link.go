// Package link connects services with each other over gRPC.
package link

import (
	"fmt"

	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/rpc"
	"github.com/errandhq/errand/pkg/telemetry"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// TaskStore connects to the task store, at host:port or in memory. What changes
// nothing when it comes twice is sent again when an answer is lost: writes of events
// by their number, and messages whose agent de-duplicates when a task store is
// silent for long. One that answers leaves their repetition to senders.
func TaskStore(target string, memory *rpc.InMemory, limits config.Limits, tel *telemetry.Telemetry) (*grpc.ClientConn, error) {
	service := taskstorev1.TaskStoreService_ServiceDesc.ServiceName
	var safe []string
	for _, method := range []string{
		"CancelTask", "RenewLeases", "WriteEvents",
		"FindMessage", "GetTask", "ListTasks", "ListEvents", "GetVersions", "ListUserMessages", "GetContext",
		"ListTurns", "GetInfo",
	} {
		safe = append(safe, service+"/"+method)
	}
	safe = append(safe, taskstorev1.AdminService_ServiceDesc.ServiceName+"/ListDeadLetters")
	return dial("task store", rpc.ClientConfig{
		Target: target, InMemory: memory, RetrySafe: safe, RetrySafeRequest: deduplicated,
	}, limits, tel)
}

// deduplicated tells of a message that it may come twice.
func deduplicated(request any) bool {
	message, ok := request.(interface{ GetDedupe() bool })
	return ok && message.GetDedupe()
}

// Notifier connects to a notifier, at host:port or in memory.
func Notifier(target string, memory *rpc.InMemory, limits config.Limits, tel *telemetry.Telemetry) (*grpc.ClientConn, error) {
	return dial("notifier", rpc.ClientConfig{Target: target, InMemory: memory}, limits, tel)
}

func dial(what string, cfg rpc.ClientConfig, limits config.Limits, tel *telemetry.Telemetry) (*grpc.ClientConn, error) {
	cfg.MaxRecvBytes, cfg.MaxSendBytes = limits.Internal(), limits.Internal()
	cfg.MaxCallTime, cfg.Telemetry = limits.Call.Value(), tel
	conn, err := rpc.Dial(cfg)
	if err != nil {
		return nil, fmt.Errorf("connect to the %s: %w", what, err)
	}
	return conn, nil
}

// NewServer builds the gRPC server of a service: on addr, and in memory where
// the listener is given.
func NewServer(addr string, memory *rpc.InMemory, cfg rpc.ServerConfig, limits config.Limits) (*rpc.Server, error) {
	cfg.Addr = addr
	cfg.MaxRecvBytes, cfg.MaxSendBytes = limits.Internal(), limits.Internal()
	cfg.MaxCalls, cfg.MaxCallTime = limits.Calls, limits.Call.Value()
	if memory != nil {
		cfg.Listeners = append(cfg.Listeners, memory.Listener())
	}
	server, err := rpc.NewServer(cfg)
	if err != nil {
		return nil, fmt.Errorf("build gRPC server: %w", err)
	}
	return server, nil
}
