package testkit

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Databases of a run that was killed, and templates, whose end no test knows,
// are dropped by a later run.
const leftoverAge = 2 * time.Hour

func givenServer(given string) (*cluster, error) {
	u, err := url.Parse(given)
	if err != nil || u.Scheme == "" {
		return nil, fmt.Errorf("%s is not a URL", DatabaseURLVariable)
	}
	if err := dropLeftovers(u); err != nil {
		return nil, fmt.Errorf("%s: %w", DatabaseURLVariable, err)
	}
	return &cluster{url: u}, nil
}

func dropLeftovers(server *url.URL) error {
	ctx, cancel := context.WithTimeout(context.Background(), postgresPatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer conn.Close(ctx)
	rows, err := conn.Query(ctx, `SELECT datname FROM pg_database WHERE datname LIKE 'errand\_%'`)
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("list databases: %w", err)
	}
	for _, name := range names {
		if !isLeftover(name, time.Now()) {
			continue
		}
		if _, err := conn.Exec(ctx, dropStatement(name)); err != nil {
			return fmt.Errorf("drop the leftover database %s: %w", name, err)
		}
	}
	return nil
}

func isLeftover(name string, now time.Time) bool {
	parts := strings.Split(name, "_")
	if len(parts) != 4 || parts[0] != "errand" || (parts[1] != "test" && parts[1] != "template") {
		return false
	}
	made, err := strconv.ParseInt(parts[2], 10, 64)
	return err == nil && now.Sub(time.Unix(made, 0)) > leftoverAge
}

func randomText() string { return rand.Text()[:12] }
