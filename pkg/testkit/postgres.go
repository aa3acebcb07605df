package testkit

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"
)

// DatabaseURLVariable names the Postgres server that tests use: a URL of a role
// that may create databases. Without it, the first test that needs Postgres
// starts a temporary server from the installed binaries.
const DatabaseURLVariable = "ERRAND_TEST_DATABASE_URL"

const postgresPatience = 60 * time.Second

// One server for all tests of a process: starting one takes seconds.
var postgresServer = sync.OnceValues(func() (*cluster, error) {
	if given := os.Getenv(DatabaseURLVariable); given != "" {
		return givenServer(given)
	}
	return startCluster()
})

// Postgres returns the URL of an empty database, which is dropped when the test
// ends.
func Postgres(t testing.TB) string {
	t.Helper()
	return newDatabase(t, "template1")
}

func newDatabase(t testing.TB, template string) string {
	t.Helper()
	server := requirePostgres(t)
	name := databaseName("test")
	require.NoError(t, admin(server, createStatement(name, template)), "create a database")
	t.Cleanup(func() {
		require.NoError(t, admin(server, dropStatement(name)), "drop the test's database")
	})
	return withDatabase(server, name)
}

func requirePostgres(t testing.TB) *url.URL {
	t.Helper()
	server, err := postgresServer()
	if err != nil {
		t.Fatalf("This test needs Postgres: %v\nInstall Postgres 14 or newer (initdb and pg_ctl are enough), or set %s to the URL of a server.",
			err, DatabaseURLVariable)
	}
	return server.url
}

var templates = struct {
	sync.Mutex
	byName map[string]*template
}{byName: map[string]*template{}}

// template is a migrated database of which tests get copies.
type template struct {
	once     sync.Once
	database string
	err      error
}

// PostgresFrom is Postgres for tests that need a migrated database. The first
// test that asks for a name has migrate run on an empty database; every test
// gets a copy of it, which is much faster than to migrate anew. migrate must
// close its connections before it returns.
func PostgresFrom(t testing.TB, name string, migrate func(url string) error) string {
	t.Helper()
	server := requirePostgres(t)
	templates.Lock()
	tmpl, ok := templates.byName[name]
	if !ok {
		tmpl = &template{}
		templates.byName[name] = tmpl
	}
	templates.Unlock()

	tmpl.once.Do(func() { tmpl.database, tmpl.err = makeTemplate(server, migrate) })
	require.NoError(t, tmpl.err, "migrate the template database %s", name)
	return newDatabase(t, tmpl.database)
}

func makeTemplate(server *url.URL, migrate func(url string) error) (string, error) {
	name := databaseName("template")
	if err := admin(server, createStatement(name, "template1")); err != nil {
		return "", err
	}
	return name, migrate(withDatabase(server, name))
}

func admin(server *url.URL, statement string) error {
	ctx, cancel := context.WithTimeout(context.Background(), postgresPatience)
	defer cancel()
	conn, err := pgx.Connect(ctx, server.String())
	if err != nil {
		return fmt.Errorf("connect to Postgres: %w", err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, statement); err != nil {
		return fmt.Errorf("%s: %w", statement, err)
	}
	return nil
}

// databaseName holds the time, so that another run can tell leftovers.
func databaseName(kind string) string {
	return fmt.Sprintf("errand_%s_%d_%s", kind, time.Now().Unix(), strings.ToLower(randomText()))
}

func createStatement(name, template string) string {
	return "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + pgx.Identifier{template}.Sanitize()
}

func dropStatement(name string) string {
	return "DROP DATABASE IF EXISTS " + pgx.Identifier{name}.Sanitize() + " WITH (FORCE)"
}

func withDatabase(server *url.URL, name string) string {
	u := *server
	u.Path = "/" + name
	return u.String()
}
