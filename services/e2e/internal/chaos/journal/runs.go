package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// RunsVariable names the folder into which executors write their runs.
const RunsVariable = "ERRAND_CHAOS_RUNS"

// RunLog is where one process writes down its runs: one JSON object a line, a
// run once when it begins and again when it ends.
type RunLog struct{ file *os.File }

// CreateRunLog creates the log of a process in a folder.
func CreateRunLog(folder, process string, pid int) (*RunLog, error) {
	// A process that is started again gets a file of its own, so that only the last
	// line of a file can be torn.
	path := filepath.Join(folder, fmt.Sprintf("%s-%d.jsonl", process, pid))
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create run log: %w", err)
	}
	return &RunLog{file}, nil
}

// Write writes r as it is now. It is not buffered: what was written stays when
// the process is killed.
func (l *RunLog) Write(r Run) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("encode run: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write run: %w", err)
	}
	return nil
}

// Close closes the log.
func (l *RunLog) Close() error { return l.file.Close() }

// ReadRuns returns the runs of all processes that wrote into the folder, each
// once, in the order in which they began.
func ReadRuns(folder string) ([]Run, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.jsonl"))
	if err != nil {
		return nil, fmt.Errorf("find run logs: %w", err)
	}
	latest := map[string]Run{}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read runs: %w", err)
		}
		if err := parseRuns(text, latest); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	runs := make([]Run, 0, len(latest))
	for _, r := range latest {
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b Run) int { return a.Begun.Compare(b.Begun) })
	return runs, nil
}

// parseRuns leaves out what follows the last line's end: the process died there.
func parseRuns(text []byte, latest map[string]Run) error {
	for line := range bytes.Lines(text) {
		if !bytes.HasSuffix(line, []byte("\n")) {
			return nil
		}
		var r Run
		if err := json.Unmarshal(line, &r); err != nil {
			return fmt.Errorf("decode run: %w", err)
		}
		latest[r.ID] = r
	}
	return nil
}
