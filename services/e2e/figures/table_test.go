package figures_test

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// table collects what was measured.
type table struct {
	mu    sync.Mutex
	rows  []string
	cells map[string]map[string]string
}

var figures = table{cells: map[string]map[string]string{}}

func (f *table) set(row, engine, format string, value float64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cells[row] == nil {
		f.cells[row] = map[string]string{}
		f.rows = append(f.rows, row)
	}
	f.cells[row][engine] = fmt.Sprintf(format, value)
}

func (f *table) print(w io.Writer) {
	if len(f.rows) == 0 {
		return
	}
	fmt.Fprintf(w, "\n| %-28s | %-14s | %-14s |\n|%s|%s|%s|\n", "", "SQLite", "Postgres",
		"------------------------------", "----------------", "----------------")
	for _, row := range f.rows {
		fmt.Fprintf(w, "| %-28s | %-14s | %-14s |\n", row, f.cells[row]["SQLite"], f.cells[row]["Postgres"])
	}
}

var resident = regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`)

// residentKiB is what of a process is in memory (Linux).
func residentKiB(b *testing.B, pid int) int {
	b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	require.NoError(b, err)
	found := resident.FindSubmatch(text)
	require.NotNil(b, found)
	n, err := strconv.Atoi(string(found[1]))
	require.NoError(b, err)
	return n
}
