package postgres_test

import (
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/stretchr/testify/require"
)

// cut is what the pooler does to a connection at the end of the next request.
type cut int32

const (
	cutNothing cut = iota
	// cutBefore loses the request.
	cutBefore
	// cutAfter loses the answer.
	cutAfter
)

// pooler is a small Postgres pooler in transaction mode: a client has a server's
// connection for the length of a transaction only, another one each time. It
// tracks no prepared statements. It can cut connections, too.
type pooler struct {
	listener net.Listener
	servers  chan *pgconn.HijackedConn
	next     atomic.Int32
	clients  sync.WaitGroup
	mu       sync.Mutex
	open     []net.Conn
}

// transactionPooler is what stands between clients and a database.
type transactionPooler interface {
	// url is the pooler's address for a database user, with more settings.
	url(settings string) string
	// restart cuts all clients off.
	restart(t testing.TB)
}

// newTransactionPooler starts PgBouncer where the tests are given one, else the
// stand-in below.
func newTransactionPooler(t testing.TB, url string, size int) transactionPooler {
	t.Helper()
	if program := os.Getenv(pgbouncerVariable); program != "" {
		return newPgbouncer(t, program, url, size)
	}
	t.Log("pooler: the tests' own;", pgbouncerVariable, "names no PgBouncer")
	return newPooler(t, url, size)
}

func newPooler(t testing.TB, url string, size int) *pooler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &pooler{listener: listener, servers: make(chan *pgconn.HijackedConn, size)}
	for range size {
		conn, err := pgconn.Connect(t.Context(), url)
		require.NoError(t, err)
		server, err := conn.Hijack()
		require.NoError(t, err)
		p.servers <- server
	}
	p.clients.Go(p.accept)
	t.Cleanup(p.close)
	return p
}

func (p *pooler) url(settings string) string {
	return fmt.Sprintf("postgres://postgres@%s/pooled?sslmode=disable&%s", p.listener.Addr(), settings)
}

func (p *pooler) restart(testing.TB) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

func (p *pooler) close() {
	_ = p.listener.Close()
	p.restart(nil)
	p.clients.Wait()
	close(p.servers)
	for s := range p.servers {
		_ = s.Conn.Close()
	}
}

func (p *pooler) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.open = append(p.open, client)
		p.mu.Unlock()
		p.clients.Go(func() {
			defer client.Close()
			p.serve(pgproto3.NewBackend(client, client))
		})
	}
}

func (p *pooler) serve(client *pgproto3.Backend) {
	if _, err := client.ReceiveStartupMessage(); err != nil {
		return
	}
	client.Send(&pgproto3.AuthenticationOk{})
	for name, value := range map[string]string{"standard_conforming_strings": "on", "client_encoding": "UTF8"} {
		client.Send(&pgproto3.ParameterStatus{Name: name, Value: value})
	}
	client.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	open := client.Flush() == nil
	for open {
		open = p.transaction(client)
	}
}

// transaction forwards one transaction; false ends the client's connection.
func (p *pooler) transaction(client *pgproto3.Backend) bool {
	msg, err := client.Receive()
	if err != nil {
		return false
	}
	server := <-p.servers
	defer func() { p.servers <- server }()
	var request []byte
	for err == nil {
		request, err = msg.Encode(request)
		switch msg.(type) {
		case *pgproto3.Sync, *pgproto3.Query:
			status := p.exchange(server, client, request)
			if status == 'I' || status == 0 {
				return status == 'I'
			}
			request = request[:0]
		case *pgproto3.Terminate:
			err = net.ErrClosed
		}
		if err == nil {
			msg, err = client.Receive()
		}
	}
	rollback(server)
	return false
}

// exchange forwards a complete request and its answer, and gives the server's
// transaction status, or 0 if the client is to be cut off.
func (p *pooler) exchange(server *pgconn.HijackedConn, client *pgproto3.Backend, request []byte) byte {
	now := cut(p.next.Swap(int32(cutNothing)))
	if now == cutBefore {
		rollback(server)
		return 0
	}
	if _, err := server.Conn.Write(request); err != nil {
		return 0
	}
	for {
		msg, err := server.Frontend.Receive()
		if err != nil {
			return 0
		}
		client.Send(msg)
		if ready, done := msg.(*pgproto3.ReadyForQuery); done {
			if now == cutAfter || client.Flush() != nil {
				rollback(server)
				return 0
			}
			return ready.TxStatus
		}
	}
}

// rollback ends what a client left open.
func rollback(server *pgconn.HijackedConn) {
	server.Frontend.Send(&pgproto3.Query{String: "ROLLBACK"})
	if server.Frontend.Flush() != nil {
		return
	}
	for {
		msg, err := server.Frontend.Receive()
		if _, done := msg.(*pgproto3.ReadyForQuery); done || err != nil {
			return
		}
	}
}
