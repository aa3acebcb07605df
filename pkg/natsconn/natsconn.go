// Package natsconn connects to NATS and holds what everything on NATS shares:
// subjects, trace context in headers and the upkeep of streams.
package natsconn

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/nats-io/nats.go"
)

// ErrDisconnected means that there is no connection to NATS at the moment.
var ErrDisconnected = errors.New("not connected to NATS")

const (
	firstPatience = 5 * time.Second
	reconnectMin  = 100 * time.Millisecond
	reconnectMax  = 5 * time.Second
	// A dead peer is noticed after pingInterval × (pingsOut + 1).
	pingInterval = 10 * time.Second
	pingsOut     = 2
)

// Config says where NATS is.
type Config struct {
	// URL is one or more NATS URLs, separated by commas; credentials may stand in it.
	URL string
	// InProcess, if set, is a server in this process, used instead of URL.
	InProcess nats.InProcessConnProvider
	// Name shows up in the server's connection list.
	Name   string
	Logger *slog.Logger
}

// Connect returns a connection that reconnects for ever. It waits a few seconds
// for the first connection, at most until ctx ends, and then returns what it has
// nonetheless: a process must come up, and serve what doesn't need NATS, while
// NATS is down. Only a malformed configuration is an error.
//
// While it is disconnected, publishes fail at once instead of piling up:
// whoever publishes knows better than a buffer what is still worth sending.
// Subscriptions are kept and renewed.
func Connect(ctx context.Context, cfg Config) (*nats.Conn, error) {
	connected := make(chan struct{}, 1)
	nc, err := nats.Connect(cfg.URL, options(cfg, connected)...)
	if err != nil {
		return nil, fmt.Errorf("connect to NATS: %w", err)
	}
	if nc.IsConnected() {
		return nc, nil
	}
	cfg.Logger.WarnContext(ctx, "NATS is not reachable yet", "error", nc.LastError())
	ctx, cancel := context.WithTimeout(ctx, firstPatience)
	defer cancel()
	select {
	case <-connected:
	case <-ctx.Done():
	}
	return nc, nil
}

func options(cfg Config, connected chan<- struct{}) []nats.Option {
	logger := cfg.Logger.With("nats_connection", cfg.Name)
	opts := []nats.Option{
		nats.Name(cfg.Name),
		nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), // credentials may be wrong for a while, as in a rotation
		nats.CustomReconnectDelay(reconnectDelay),
		nats.ReconnectBufSize(-1),
		nats.PingInterval(pingInterval),
		nats.MaxPingsOutstanding(pingsOut),
		nats.ConnectHandler(func(*nats.Conn) {
			select {
			case connected <- struct{}{}:
			default:
			}
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil {
				logger.Warn("disconnected from NATS", "error", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) {
			logger.Info("connected to NATS again", "server", nc.ConnectedUrlRedacted())
		}),
		nats.LameDuckModeHandler(func(nc *nats.Conn) {
			logger.Info("the NATS server is about to stop", "server", nc.ConnectedUrlRedacted())
		}),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			logAsyncError(logger, sub, err)
		}),
	}
	if cfg.InProcess != nil {
		opts = append(opts, nats.InProcessServer(cfg.InProcess))
	}
	return opts
}

func logAsyncError(logger *slog.Logger, sub *nats.Subscription, err error) {
	if sub != nil {
		logger = logger.With("subject", sub.Subject)
	}
	logger.Warn("NATS reported an error", "error", err)
}

// reconnectDelay doubles up to the maximum, and spreads the clients of a server
// that comes back over half of it.
func reconnectDelay(attempts int) time.Duration {
	delay := reconnectMax
	if attempts < 10 {
		delay = min(reconnectMin<<max(attempts-1, 0), reconnectMax)
	}
	return delay/2 + rand.N(delay/2+1)
}

// Ready tells whether the connection is up; a service's readiness includes it.
func Ready(nc *nats.Conn) error {
	if nc.IsConnected() {
		return nil
	}
	if err := nc.LastError(); err != nil {
		return fmt.Errorf("%w: %w", ErrDisconnected, err)
	}
	return ErrDisconnected
}
