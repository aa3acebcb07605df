package sqlite_test

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/errandhq/errand/services/taskstore/internal/sqlite"
	"github.com/errandhq/errand/services/taskstore/internal/storetest"
	"github.com/ncruces/go-sqlite3"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

var taskIDs = regexp.MustCompile(`'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}'`)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// open makes a database in a file of its own.
func open(t testing.TB) (e *sqlite.Engine, path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "errand's store?.db")
	require.NoError(t, sqlite.Migrate(t.Context(), path))
	e, err := sqlite.Open(t.Context(), path)
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e, path
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) storetest.Database {
		e, path := open(t)
		return storetest.Database{Engine: e, Parallel: 1, Exec: func(_ context.Context, sql string) error {
			db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
			require.NoError(t, err)
			defer func() { require.NoError(t, db.Close()) }()
			// The suite writes ids of tasks as text.
			sql = taskIDs.ReplaceAllStringFunc(sql, func(id string) string {
				return "x'" + strings.ReplaceAll(strings.Trim(id, "'"), "-", "") + "'"
			})
			return db.Exec("PRAGMA busy_timeout = 5000; " + sql)
		}}
	})
}
