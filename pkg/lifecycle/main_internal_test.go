package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestMainEndsTheContextOnTheFirstSignal(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 1)
	signals <- syscall.SIGTERM
	var cause error
	code := runMain(signals, &strings.Builder{}, func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return nil
	})
	require.Equal(t, 0, code, "a graceful stop is a success")
	var bySignal *SignalError
	require.ErrorAs(t, cause, &bySignal)
	require.Equal(t, syscall.SIGTERM, bySignal.Signal)
}

func TestMainReturnsAtOnceOnTheSecondSignal(t *testing.T) {
	t.Parallel()
	signals := make(chan os.Signal, 2)
	signals <- syscall.SIGTERM
	signals <- syscall.SIGINT
	release := make(chan struct{})
	code := runMain(signals, &strings.Builder{}, func(context.Context) error {
		<-release
		return nil
	})
	close(release)
	require.Equal(t, 130, code)
}

func TestMainTellsHowTheCommandEnded(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		signal os.Signal
		err    error
		code   int
		stderr string
	}{
		"success":                 {nil, nil, 0, ""},
		"failure":                 {nil, errors.New("no such agent"), 1, "no such agent"},
		"gave up by a signal":     {syscall.SIGINT, fmt.Errorf("send: %w", context.Canceled), 130, ""},
		"failed after the signal": {syscall.SIGTERM, errors.New("disk full"), 1, "disk full"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			signals := make(chan os.Signal, 1)
			if tt.signal != nil {
				signals <- tt.signal
			}
			var stderr strings.Builder
			code := runMain(signals, &stderr, func(ctx context.Context) error {
				if tt.signal != nil {
					<-ctx.Done()
				}
				return tt.err
			})
			require.Equal(t, tt.code, code)
			require.Contains(t, stderr.String(), tt.stderr)
		})
	}
}

func TestMainHearsTheProcessesOwnSignals(t *testing.T) {
	code := Main(func(ctx context.Context) error {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			return err
		}
		<-ctx.Done()
		return ctx.Err()
	})
	require.Equal(t, 128+int(syscall.SIGTERM), code)
}
