package lease_test

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

// sight is one line of what executors wrote down.
type sight struct {
	at      time.Time
	pid     int
	task    string
	attempt int
	what    string
	detail  string
}

// seen is what executors wrote down of a task.
func (c *cluster) seen(id string) []sight {
	c.Helper()
	text, err := os.ReadFile(c.file)
	require.NoError(c, err)
	var all []sight
	for line := range strings.Lines(string(text)) {
		if fields := strings.SplitN(strings.TrimSpace(line), " ", 6); len(fields) >= 5 && fields[2] == id {
			all = append(all, c.parse(fields))
		}
	}
	return all
}

func (c *cluster) parse(fields []string) sight {
	c.Helper()
	nanos, err := strconv.ParseInt(fields[0], 10, 64)
	require.NoError(c, err)
	s := sight{at: time.Unix(0, nanos), task: fields[2], what: fields[4]}
	s.pid, err = strconv.Atoi(fields[1])
	require.NoError(c, err)
	s.attempt, err = strconv.Atoi(fields[3])
	require.NoError(c, err)
	if len(fields) > 5 {
		s.detail = fields[5]
	}
	return s
}

// await waits until an attempt of a task has seen something.
func (c *cluster) await(id string, attempt int, what string) sight {
	c.Helper()
	var found sight
	require.Eventually(c, func() bool {
		for _, s := range c.seen(id) {
			if s.attempt == attempt && s.what == what {
				found = s
				return true
			}
		}
		return false
	}, patience, 2*time.Millisecond, "attempt %d of %s sees no %s", attempt, id, what)
	return found
}
