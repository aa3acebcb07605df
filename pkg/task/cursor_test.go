package task_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
)

var key = task.CursorKey("0123456789abcdef")

func TestCursorComesBackForTheSameList(t *testing.T) {
	t.Parallel()
	want := task.Cursor{Time: time.Date(2026, 3, 1, 9, 0, 0, 123e6, time.UTC), ID: task.NewID()}
	got, err := key.Decode(key.Encode(want, "tenant", "agent", ""), "tenant", "agent", "")
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestCursorOfAnotherListOrKeyIsRefused(t *testing.T) {
	t.Parallel()
	token := key.Encode(task.Cursor{Time: time.UnixMilli(1), ID: "x"}, "ab", "c")
	for _, list := range [][]string{{"a", "bc"}, {"ab"}, {"ab", "c", ""}, nil} {
		_, err := key.Decode(token, list...)
		require.ErrorIs(t, err, task.ErrCursor)
	}
	_, err := task.CursorKey("another key 0123").Decode(token, "ab", "c")
	require.ErrorIs(t, err, task.ErrCursor)
}

func FuzzCursorDecode(f *testing.F) {
	for _, s := range []string{
		"", "abc", "%00", strings.Repeat("A", 10_000), base64.RawURLEncoding.EncodeToString(make([]byte, 64)),
		key.Encode(task.Cursor{ID: "x"}, "l"),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, token string) {
		c, err := key.Decode(token, "l")
		if err != nil {
			require.ErrorIs(t, err, task.ErrCursor)
			return
		}
		again, err := key.Decode(key.Encode(c, "l"), "l")
		require.NoError(t, err)
		require.Equal(t, c, again)
	})
}
