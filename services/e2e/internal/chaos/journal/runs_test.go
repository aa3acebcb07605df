package journal_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

func TestRuns_AreReadAsTheyWereLastWritten(t *testing.T) {
	t.Parallel()
	folder, begun := t.TempDir(), time.Now().UTC()
	first := journal.Run{Process: "executor-0", PID: 1, TaskID: "t", Turn: "k", Attempt: 1, ID: "a", Begun: begun}
	second := journal.Run{Process: "executor-1", PID: 2, TaskID: "t", Turn: "k", Attempt: 2, ID: "b", Begun: begun.Add(time.Second)}
	write(t, folder, first)
	write(t, folder, second)
	second.Ended, second.Result = begun.Add(2*time.Second), "completed"
	write(t, folder, second)

	runs, err := journal.ReadRuns(folder)
	require.NoError(t, err)
	require.Equal(t, []journal.Run{first, second}, runs)
}

func TestRuns_MayHaveATornLastLineAndNoOther(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	write(t, folder, journal.Run{Process: "executor-0", PID: 1, ID: "a"})
	path := filepath.Join(folder, "executor-0-1.jsonl")
	tear(t, path, `{"ID":"b"`)
	runs, err := journal.ReadRuns(folder)
	require.NoError(t, err)
	require.Len(t, runs, 1)

	tear(t, path, "\n")
	_, err = journal.ReadRuns(folder)
	require.ErrorContains(t, err, "executor-0-1.jsonl")
}

func write(t *testing.T, folder string, r journal.Run) {
	t.Helper()
	log, err := journal.CreateRunLog(folder, r.Process, r.PID)
	require.NoError(t, err)
	require.NoError(t, log.Write(r))
	require.NoError(t, log.Close())
}

func tear(t *testing.T, path, text string) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(t, err)
	_, err = file.WriteString(text)
	require.NoError(t, err)
	require.NoError(t, file.Close())
}
