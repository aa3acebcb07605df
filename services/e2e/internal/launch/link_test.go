package launch

import (
	"context"
	"io"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const (
	patience = 30 * time.Second
	// moment is long enough for bytes that flow to be seen.
	moment = 100 * time.Millisecond
)

// echo answers what it gets until a connection ends.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", loopback)
	require.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	return listener.Addr().String()
}

func newTestNetwork(t *testing.T) *network {
	t.Helper()
	n := newNetwork()
	t.Cleanup(n.close)
	return n
}

// connect is a client's connection over a link.
func connect(t *testing.T, n *network, client, server, target string) net.Conn {
	t.Helper()
	address, err := n.address(t.Context(), client, server, target)
	require.NoError(t, err)
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func say(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	_, err := conn.Write([]byte(word))
	require.NoError(t, err)
}

func hear(conn net.Conn, length int, within time.Duration) (string, error) {
	_ = conn.SetReadDeadline(time.Now().Add(within))
	word := make([]byte, length)
	_, err := io.ReadFull(conn, word)
	return string(word), err
}

func requireHeard(t *testing.T, conn net.Conn, word string) {
	t.Helper()
	heard, err := hear(conn, len(word), patience)
	require.NoError(t, err)
	require.Equal(t, word, heard)
}

func requireSilence(t *testing.T, conn net.Conn) {
	t.Helper()
	_, err := hear(conn, 1, moment)
	var timeout net.Error
	require.ErrorAs(t, err, &timeout)
	require.True(t, timeout.Timeout(), err)
}

func TestBytesStopWhileEitherEndIsCutOffAndArriveAfterwards(t *testing.T) {
	t.Parallel()
	for _, end := range []string{"gateway-0", "taskstore-0"} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			n := newTestNetwork(t)
			conn := connect(t, n, "gateway-0", "taskstore-0", echo(t))
			say(t, conn, "before")
			requireHeard(t, conn, "before")
			n.set(end, true)
			say(t, conn, "during")
			requireSilence(t, conn)
			n.set(end, false)
			requireHeard(t, conn, "during")
		})
	}
}

func TestACutLeavesOtherProcessesAlone(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	n.set("gateway-0", true)
	server := echo(t)
	mine, other := connect(t, n, "gateway-0", "taskstore-0", server), connect(t, n, "gateway-1", "taskstore-0", server)
	say(t, mine, "mine")
	say(t, other, "other")
	requireHeard(t, other, "other")
	requireSilence(t, mine)
}

func TestALinkFlowsAgainOnceBothEndsAreHealed(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	conn := connect(t, n, "gateway-0", "taskstore-0", echo(t))
	n.set("gateway-0", true)
	n.set("taskstore-0", true)
	say(t, conn, "hello")
	n.set("gateway-0", false)
	requireSilence(t, conn)
	n.set("taskstore-0", false)
	requireHeard(t, conn, "hello")
}

func TestAnEndedConnectionIsNotSeenAcrossACut(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", loopback)
	require.NoError(t, err)
	defer func() { _ = listener.Close() }()
	n := newTestNetwork(t)
	client := connect(t, n, "gateway-0", "taskstore-0", listener.Addr().String())
	server, err := listener.Accept()
	require.NoError(t, err)
	n.set("taskstore-0", true)
	require.NoError(t, server.Close())
	requireSilence(t, client)
	n.set("taskstore-0", false)
	_, err = hear(client, 1, patience)
	require.ErrorIs(t, err, io.EOF)
}

func TestAResetBreaksTheConnectionsOfAProcess(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	server := echo(t)
	mine, other := connect(t, n, "gateway-0", "taskstore-0", server), connect(t, n, "gateway-1", "taskstore-0", server)
	for _, conn := range []net.Conn{mine, other} {
		say(t, conn, "hello")
		requireHeard(t, conn, "hello")
	}
	n.reset("gateway-0")
	_, err := hear(mine, 1, patience)
	require.Error(t, err)
	say(t, other, "still here")
	requireHeard(t, other, "still here")
}

func TestAClientInTheLauncherIsRefusedAsTheServerRefuses(t *testing.T) {
	t.Parallel()
	n := newTestNetwork(t)
	free := &ports{given: map[int]bool{}}
	nobody, err := free.address(t.Context())
	require.NoError(t, err)
	_, err = n.dialer("front", "gateway-0", nobody)(t.Context())
	require.Error(t, err)

	dial := n.dialer("front", "gateway-1", echo(t))
	conn, err := dial(t.Context())
	require.NoError(t, err)
	defer func() { _ = conn.Close() }()
	say(t, conn, "hello")
	requireHeard(t, conn, "hello")
	n.set("gateway-1", true)
	ctx, cancel := context.WithTimeout(t.Context(), moment)
	defer cancel()
	_, err = dial(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}
