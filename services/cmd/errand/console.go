package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/errandhq/errand/pkg/client"
)

// console is where a command reads and writes: results go to out, everything
// else to err. On a terminal the last line of err shows what is going on.
type console struct {
	in       io.Reader
	out, err io.Writer
	// inTerminal: nothing is piped in. errTerminal: somebody is watching.
	inTerminal, errTerminal bool

	mu sync.Mutex
	// What the last line of the terminal is to show, and whether it does.
	activity string
	since    time.Time
	drawn    bool
	// The last thing that was written to out did not end its line.
	midLine bool
}

func newConsole(stdin io.Reader, stdout, stderr io.Writer) *console {
	return &console{
		in: stdin, out: stdout, err: stderr,
		inTerminal: isTerminal(stdin), errTerminal: isTerminal(stderr),
	}
}

func isTerminal(f any) bool {
	file, ok := f.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}

// print writes to out what may end amid a line.
func (c *console) print(text string) {
	if text == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	io.WriteString(c.out, text) //nolint:errcheck // whoever closed our output wants no more
	c.midLine = text[len(text)-1] != '\n'
}

// endLine ends a line of out that was begun.
func (c *console) endLine() {
	c.mu.Lock()
	midLine := c.midLine
	c.mu.Unlock()
	if midLine {
		c.print("\n")
	}
}

// notef writes a line to err.
func (c *console) notef(format string, args ...any) {
	c.endLine()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.clear()
	fmt.Fprintf(c.err, format+"\n", args...)
}

// fail writes what went wrong, with the fields that an agent named.
func (c *console) fail(code int, err error) int {
	c.notef("errand: %v", err)
	refused, _ := errors.AsType[*client.Error](err)
	if refused == nil {
		return code
	}
	for _, detail := range refused.Details {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				if line := v.GetField() + ": " + v.GetDescription(); !strings.Contains(err.Error(), line) {
					c.notef("  %s", line)
				}
			}
		}
	}
	return code
}
