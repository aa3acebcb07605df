package run

import (
	"bufio"
	"fmt"
	"os"
	"regexp"
)

// complaint is what no log may have: a panic, which need not end the process, or
// the last words of a process that failed, be it in a stop that it was asked for.
var complaint = regexp.MustCompile(`panic: |fatal error: |DATA RACE|^(errand-\w+|chaosagent): `)

// complaints are the places in the logs where a process panicked or failed.
func (r *run) complaints() []string {
	var found []string
	for _, p := range r.cluster.Processes() {
		n, line, err := findComplaint(p.Log())
		switch {
		case err != nil:
			found = append(found, err.Error())
		case n > 0:
			found = append(found, fmt.Sprintf("%s: %s; see %s:%d", p.Name(), line, p.Log(), n))
		}
	}
	return found
}

// findComplaint is the first line that has one, and its number; 0 for none.
func findComplaint(path string) (int, string, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, "", fmt.Errorf("look through a log: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if complaint.MatchString(line) {
			const most = 200
			return n, line[:min(most, len(line)-1)], nil
		}
		if err != nil {
			return 0, "", nil // the end
		}
	}
}
