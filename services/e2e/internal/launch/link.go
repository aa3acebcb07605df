package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

// linkBuffer is what a link holds of each direction of a connection, in bytes,
// beside what the kernel holds.
const linkBuffer = 32 << 10

var errLinkClosed = errors.New("the link is closed")

// link is the way of all connections from one process to one address of another.
// Each consists of two, from the client to the link and from there to the server.
type link struct {
	client, server, target string

	gate     gate
	listener net.Listener // nil for a client inside the launcher
	ctx      context.Context
	cancel   context.CancelFunc
	work     sync.WaitGroup

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

func newLink(client, server, target string) *link {
	l := &link{client: client, server: server, target: target, open: map[net.Conn]struct{}{}}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *link) listen(ctx context.Context) error {
	var err error
	if l.listener, err = (&net.ListenConfig{}).Listen(ctx, "tcp", loopback); err != nil {
		return fmt.Errorf("link %s to %s: %w", l.client, l.server, err)
	}
	l.work.Go(l.accept)
	return nil
}

func (l *link) accept() {
	for {
		client, err := l.listener.Accept()
		if err != nil {
			return // the link was closed
		}
		l.work.Go(func() { l.serve(client) })
	}
}

func (l *link) serve(client net.Conn) {
	server, err := l.connect(l.ctx)
	if err != nil {
		abort(client)
		return
	}
	l.join(client, server)
}

// dial is a connection for a client inside the launcher. Unlike others, it is
// refused if the server refuses.
func (l *link) dial(ctx context.Context) (net.Conn, error) {
	server, err := l.connect(ctx)
	if err != nil {
		return nil, err
	}
	local, remote := net.Pipe()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		abort(server)
		return nil, errLinkClosed
	}
	l.work.Go(func() { l.join(remote, server) })
	return local, nil
}

func (l *link) connect(ctx context.Context) (net.Conn, error) {
	if err := l.gate.pass(ctx); err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "tcp", l.target)
}

// join carries bytes between two connections until both directions have ended.
func (l *link) join(client, server net.Conn) {
	if !l.add(client, server) {
		return
	}
	var pumps sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, server}, {server, client}} {
		pumps.Go(func() {
			if err := l.pump(way[0], way[1]); err != nil {
				abort(client)
				abort(server)
			}
		})
	}
	pumps.Wait()
	l.remove(client, server)
}

// pump carries bytes one way. The end of a connection passes the gate as its bytes
// do.
func (l *link) pump(from, to net.Conn) error {
	buffer := make([]byte, linkBuffer)
	for {
		n, readErr := from.Read(buffer)
		if err := l.gate.pass(l.ctx); err != nil {
			return err
		}
		if n > 0 {
			if _, err := to.Write(buffer[:n]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(readErr, io.EOF):
			return closeWrite(to)
		case readErr != nil:
			return readErr
		}
	}
}

func closeWrite(conn net.Conn) error {
	if half, ok := conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return conn.Close()
}

// abort closes a connection so that its other side sees it broken.
func abort(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

func (l *link) add(conns ...net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		if l.closed {
			abort(conn)
			continue
		}
		l.open[conn] = struct{}{}
	}
	return !l.closed
}

func (l *link) remove(conns ...net.Conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, conn := range conns {
		_ = conn.Close()
		delete(l.open, conn)
	}
}

// reset breaks all connections.
func (l *link) reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for conn := range l.open {
		abort(conn)
	}
}

func (l *link) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.cancel()
	if l.listener != nil {
		_ = l.listener.Close()
	}
	l.reset()
	l.work.Wait()
}
