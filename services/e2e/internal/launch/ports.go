package launch

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports below those that systems give to outgoing connections, and above those of
// well-known servers: a process that starts anew must be able to listen where it
// did before.
const (
	firstPort = 16_000
	lastPort  = 31_999
)

// ports hands out loopback addresses, each once.
type ports struct{ given map[int]bool }

// address is one that was free a moment ago.
func (p *ports) address(ctx context.Context) (string, error) {
	const tries = 1000
	for range tries {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if p.given[port] || !free(ctx, address) {
			continue
		}
		p.given[port] = true
		return address, nil
	}
	return "", errors.New("found no free port")
}

func free(ctx context.Context, address string) bool {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return false
	}
	return l.Close() == nil
}
