package run

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// panics are the places in the logs where a process panicked: not every panic
// ends the process.
func (r *run) panics() []string {
	var found []string
	for _, p := range r.cluster.Processes() {
		n, err := panicLine(p.Log())
		switch {
		case err != nil:
			found = append(found, err.Error())
		case n > 0:
			found = append(found, fmt.Sprintf("%s panicked; see %s:%d", p.Name(), p.Log(), n))
		}
	}
	return found
}

// panicLine is the number of the first line that tells of a panic; 0 for none.
func panicLine(path string) (int, error) {
	file, err := os.Open(path)
	if err != nil {
		return 0, fmt.Errorf("look for panics: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := bufio.NewReader(file)
	for n := 1; ; n++ {
		line, err := lines.ReadString('\n')
		if strings.Contains(line, "panic: ") || strings.Contains(line, "fatal error: ") || strings.Contains(line, "DATA RACE") {
			return n, nil
		}
		if err != nil {
			return 0, nil // the end
		}
	}
}
