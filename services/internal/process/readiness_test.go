package process

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReadinessIsLoggedWhenItChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		var reason atomic.Pointer[string]
		logger := slog.New(slog.NewTextHandler(&out, nil))
		loop := logReadiness(logger, func() error {
			if r := reason.Load(); r != nil {
				return errors.New(*r)
			}
			return nil
		})
		require.NoError(t, loop.Start(t.Context()))
		say := func(r *string) {
			reason.Store(r)
			time.Sleep(3 * readinessInterval)
			synctest.Wait()
		}
		away, other := "no NATS", "another agents file"
		say(&away)
		say(&other)
		say(nil)
		require.NoError(t, loop.Stop(t.Context()))
		var lines []string
		for line := range strings.Lines(out.String()) {
			_, what, _ := strings.Cut(line, "msg=")
			lines = append(lines, strings.TrimSpace(what))
		}
		require.Equal(t, []string{`"not ready" error="no NATS"`, `"not ready" error="another agents file"`, "ready"}, lines)
	})
}
