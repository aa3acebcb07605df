package binding

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// maxReceive lets a client take the largest answers that a server may give.
const maxReceive = 64 << 20

// Client calls the agents of one server.
type Client struct {
	// HTTP is for what is no operation, or none that a binding would send.
	HTTP *http.Client
	// URL is the server's, without a slash at its end.
	URL string

	conn *grpc.ClientConn
}

// NewClient makes a client for a server; it connects when it is used.
func NewClient(url, grpcAddress string) (*Client, error) {
	return newClient(url, grpcAddress, (&net.Dialer{}).DialContext)
}

// narrow is the receive buffer of a narrow client, in bytes: not less than a
// packet on the loopback device.
const narrow = 128 << 10

// NewNarrowClient makes a client whose connections hold little that was not read:
// a stream's reader that is slow is so for the server as well.
func NewNarrowClient(url, grpcAddress string) (*Client, error) {
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err //nolint:wrapcheck // as a dialer does
		}
		return conn, conn.(*net.TCPConn).SetReadBuffer(narrow) //nolint:wrapcheck // as a dialer does
	}
	const smallest = 64 << 10 // of gRPC
	return newClient(url, grpcAddress, dial, grpc.WithStaticStreamWindowSize(smallest), grpc.WithStaticConnWindowSize(smallest))
}

type dialer func(ctx context.Context, network, addr string) (net.Conn, error)

func newClient(url, grpcAddress string, dial dialer, options ...grpc.DialOption) (*Client, error) {
	options = append(options,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) { return dial(ctx, "tcp", addr) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxReceive), grpc.WaitForReady(true)))
	conn, err := grpc.NewClient("passthrough:///"+grpcAddress, options...)
	if err != nil {
		return nil, fmt.Errorf("prepare connection to %s: %w", grpcAddress, err)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, DisableCompression: true, DialContext: dial}
	return &Client{HTTP: &http.Client{Transport: transport, CheckRedirect: refuseRedirect}, URL: url, conn: conn}, nil
}

// refuseRedirect: no answer of an A2A server is a redirect.
func refuseRedirect(r *http.Request, _ []*http.Request) error {
	return errors.New("redirected to " + r.URL.String())
}

// Bindings are the three ways to one agent; the empty name is the default agent.
func (c *Client) Bindings(agent string) []Binding {
	base, tenant := c.Base(agent), ""
	if agent != "" {
		tenant = "self." + agent
	}
	return []Binding{
		&jsonrpc{client: c.HTTP, url: base + "/rpc"},
		&rest{client: c.HTTP, base: base},
		&grpcBinding{conn: c.conn, tenant: tenant},
	}
}

// Base is the URL below which an agent is served over HTTP.
func (c *Client) Base(agent string) string {
	if agent == "" {
		return c.URL
	}
	return c.URL + "/agents/" + agent
}

// Close ends all connections.
func (c *Client) Close() error {
	c.HTTP.CloseIdleConnections()
	if err := c.conn.Close(); err != nil {
		return fmt.Errorf("close connection: %w", err)
	}
	return nil
}
