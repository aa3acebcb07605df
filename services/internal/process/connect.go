package process

import (
	"context"

	"github.com/nats-io/nats.go"
	"google.golang.org/grpc"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/services/internal/link"
)

// ConnectNATS connects to NATS; the connection is closed when all parts that
// are added later have stopped. So are those of the other methods.
func (p *Process) ConnectNATS(ctx context.Context, url string) (*nats.Conn, error) {
	nc, err := natsconn.Connect(ctx, natsconn.Config{URL: url, Name: p.Name, Logger: p.Logger})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what was tried
	}
	p.Parts.AddCloser("nats connection", func(context.Context) error { nc.Close(); return nil })
	return nc, nil
}

// ConnectTaskStore connects to the task store at host:port.
func (p *Process) ConnectTaskStore(target string) (*grpc.ClientConn, error) {
	conn, err := link.TaskStore(target, nil, p.Agents.Limits, p.Telemetry)
	return p.connected("task store connection", conn, err)
}

// ConnectNotifier connects to the notifier at host:port.
func (p *Process) ConnectNotifier(target string) (*grpc.ClientConn, error) {
	conn, err := link.Notifier(target, nil, p.Agents.Limits, p.Telemetry)
	return p.connected("notifier connection", conn, err)
}

func (p *Process) connected(name string, conn *grpc.ClientConn, err error) (*grpc.ClientConn, error) {
	if err != nil {
		return nil, err
	}
	p.Parts.AddCloser(name, func(context.Context) error { return conn.Close() })
	return conn, nil
}
