package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/sethvargo/go-retry"
	"go.opentelemetry.io/otel/metric"
	noopmetric "go.opentelemetry.io/otel/metric/noop"
	"go.opentelemetry.io/otel/trace"
	nooptrace "go.opentelemetry.io/otel/trace/noop"
)

// Bounds of what is waited for; see patience for those within a transaction.
const (
	// For the answer to one request. No caller may interrupt the second half of an
	// update, and a server that vanished without a word must be given up.
	answerTimeout = 15 * time.Second
	// Between the two halves of an update: the server ends the transaction of a
	// program that was stopped there.
	idleTimeout = 5 * time.Second
	// For a new connection, at each of the URL's hosts, and for the sign of life
	// of an old one.
	connectTimeout = 5 * time.Second
	pingTimeout    = 2 * time.Second
)

// A transaction that lost against another one, or met a server that restarts, is
// tried again at growing, uneven intervals: for half a second in all.
const (
	maxRetries = 7
	retryPause = 5 * time.Millisecond
)

// Options are what the URL doesn't say.
type Options struct {
	// nil stands for providers that keep nothing.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider
	// nil for a logger that writes nothing.
	Logger *slog.Logger
	// How long one answer of the server may take, 15 seconds if it is zero. Waits
	// for locks and for statements are shorter in proportion.
	AnswerTimeout time.Duration
}

// maxConns is for URLs without pool_max_conns. It leaves room for reads beside a few large transactions. More than
// some twenty connections in all make a server slower.
const maxConns = 16

// Engine is a Postgres database.
type Engine struct {
	pool          *pgxpool.Pool
	logger        *slog.Logger
	patience      patience
	unpartitioned *unpartitioned
	// Statements of listings by their filters, made when first used.
	listings sync.Map
}

var _ engine.Engine = (*Engine)(nil)

// Open returns an engine for a database URL (postgres://…) or keyword string,
// with pgx's pool_… and default_query_exec_mode settings. It does not connect:
// a database that is down is told by Ping.
func Open(ctx context.Context, url string, opts Options) (*Engine, error) {
	cfg, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("parse database URL: %w", err)
	}
	if !strings.Contains(url, "pool_max_conns") {
		cfg.MaxConns = maxConns
	}
	return open(ctx, cfg, opts)
}

func open(ctx context.Context, cfg *pgxpool.Config, opts Options) (*Engine, error) {
	prepare(cfg.ConnConfig)
	cfg.PingTimeout = pingTimeout
	traces := cmp.Or[trace.TracerProvider](opts.TracerProvider, nooptrace.NewTracerProvider())
	metrics := cmp.Or[metric.MeterProvider](opts.MeterProvider, noopmetric.NewMeterProvider())
	cfg.ConnConfig.Tracer = otelpgx.NewTracer(
		otelpgx.WithTracerProvider(traces),
		otelpgx.WithMeterProvider(metrics),
		otelpgx.WithSpanNameFunc(statementName),
	)
	pool, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open database pool: %w", err)
	}
	if err := otelpgx.RecordStats(pool, otelpgx.WithStatsMeterProvider(metrics)); err != nil {
		pool.Close()
		return nil, fmt.Errorf("record pool metrics: %w", err)
	}
	counted, err := newUnpartitioned(metrics)
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Engine{
		pool: pool, logger: cmp.Or(opts.Logger, slog.New(slog.DiscardHandler)),
		patience: patience(cmp.Or(opts.AnswerTimeout, answerTimeout)), unpartitioned: counted,
	}, nil
}

// prepare sets what a URL may leave out. Of several hosts, a task store can use
// the one only that takes writes.
func prepare(cfg *pgx.ConnConfig) {
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "errand-taskstore"
	}
	if cfg.ConnectTimeout == 0 {
		cfg.ConnectTimeout = connectTimeout
	}
	if cfg.ValidateConnect == nil {
		cfg.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
}

// Close closes the connections and waits for those in use.
func (e *Engine) Close() { e.pool.Close() }

// Ping fails while the database can't be reached, takes no writes or has an older
// schema than the one that this program was built for. A newer one is served: migrations leave
// room for the program before them, so that a cluster can be upgraded while it
// runs.
func (e *Engine) Ping(ctx context.Context) error {
	var have int64
	err := e.try(ctx, func(conn *pgxpool.Conn) error {
		var readOnly bool
		err := conn.QueryRow(ctx, sqlSchemaVersion.text).Scan(&have, &readOnly)
		if err == nil && readOnly {
			return ErrReadOnly
		}
		return err
	})
	if sqlState(err) == codeUndefinedTable {
		return fmt.Errorf("%w: there is none", ErrOldSchema)
	}
	if err != nil {
		return fmt.Errorf("read schema version: %w", err)
	}
	if want := SchemaVersion(); have < want {
		return fmt.Errorf("%w: it is at %d, want %d", ErrOldSchema, have, want)
	}
	return nil
}

// Now is the server's time.
func (e *Engine) Now(ctx context.Context) (time.Time, error) {
	var now time.Time
	err := e.try(ctx, func(conn *pgxpool.Conn) error {
		return conn.QueryRow(ctx, sqlNow.text).Scan(&now)
	})
	if err != nil {
		return time.Time{}, fmt.Errorf("read the server's time: %w", err)
	}
	return now, nil
}

// do runs a transaction on a connection, and again while it fails in a way that
// leaves nothing changed and may pass. A transaction must say so itself when it
// is not known to have changed nothing (ErrInDoubt).
func (e *Engine) do(ctx context.Context, what string, transaction func(*pgxpool.Conn) error) error {
	pauses := retry.WithMaxRetries(maxRetries, retry.WithJitterPercent(50, retry.NewExponential(retryPause)))
	err := retry.Do(ctx, pauses, func(ctx context.Context) error {
		err := e.try(ctx, transaction)
		if worthRetry(err) {
			return retry.RetryableError(err)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (e *Engine) try(ctx context.Context, transaction func(*pgxpool.Conn) error) error {
	conn, err := e.pool.Acquire(ctx)
	if err != nil {
		return meaning(ctx, err, true)
	}
	defer conn.Release()
	err = meaning(ctx, transaction(conn), conn.Conn().IsClosed())
	if errors.Is(err, ErrReadOnly) {
		e.pool.Reset() // the others lead to the same server; new ones look for the primary
	}
	return err
}

// abandon ends a transaction without changes. Should that fail, the pool closes
// the connection, which does the same.
func abandon(ctx context.Context, conn *pgxpool.Conn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), idleTimeout)
	defer cancel()
	_, _ = conn.Exec(ctx, sqlRollback.text, pgx.QueryExecModeExec)
}
