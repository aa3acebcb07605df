package conformance_test

import (
	"io"
	"net/http"
	"slices"
	"strconv"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// JSONRPC-SSE-001, HTTP_JSON-SSE-001. That an event is one data line in strict
// framing is checked by the reader of every test.
func TestEventStreamsAreNeitherCachedNorBuffered(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		s := c.sendStream(say("echo"))
		require.Equal(t, "text/event-stream", s.Header.Get("Content-Type"))
		require.Contains(t, s.Header.Get("Cache-Control"), "no-cache")
		require.Equal(t, "no", s.Header.Get("X-Accel-Buffering"))
		require.Empty(t, s.Header.Get("Content-Encoding"))
		s.rest()
	})
}

// An idle stream lives by comments, however short the time is that one event
// may take to be written.
func TestAnIdleStreamIsKeptAlive(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		s := c.sendStream(say("sleep 2.5"))
		events := s.rest()
		require.Equal(t, completed, state(c.replay(events)))
		require.GreaterOrEqual(t, s.Comments(), int64(5), "comments in 2.5 s, one every 0.3 s")
	})
}

// A stream that was cut is resumed by the id of the last event: only what came
// after it is sent, whether the task is over or not.
func TestLastEventIDResumesAStream(t *testing.T) {
	t.Parallel()
	eachJSON(t, probeAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		hold := newHold(t)
		s := c.sendStream(say(hold.text))
		seen := s.until(func(e binding.Event) bool { return e.GetArtifactUpdate() != nil })
		s.Close()
		id := seen[0].GetTask().GetId()
		last := seen[len(seen)-1].ID
		hold.awaitRun(t)

		live := c.subscribe(id, binding.With("Last-Event-ID", last))
		hold.release()
		rest := live.rest()
		c.requireResumed(seen, rest)

		// Over; and from every position.
		all := slices.Concat(seen, rest)
		for i := range all {
			rest := c.subscribe(id, binding.With("Last-Event-ID", all[i].ID)).rest()
			require.Len(t, rest, len(all)-i-1)
			c.requireResumed(all[:i+1], rest)
		}
		// The other binding counts the same versions.
		for _, other := range callers(t, c.cluster, c.agent)[:2] {
			require.Len(t, other.subscribe(id, binding.With("Last-Event-ID", last)).rest(), len(rest))
		}
	})
}

// requireResumed: rest goes on where seen ended, without a Task first.
func (c *caller) requireResumed(seen, rest []binding.Event) {
	c.t.Helper()
	for _, e := range rest {
		require.Nil(c.t, e.GetTask(), "a snapshot although nothing is missing")
	}
	all := append(append([]binding.Event{}, seen...), rest...)
	c.requireGrowingIDs(all)
	c.requireSame(c.replay(all), c.get(seen[0].GetTask().GetId()))
}

// An id that the log cannot go on from gives the task as it is, or is refused;
// it is no reason to fail.
func TestAForeignLastEventIDDoesNoHarm(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		asked := c.send(say("ask"))
		for _, id := range []string{"abc", "-1", "99999999999999999999", "1.5", "1000000"} {
			s, answer, err := c.Open(within(t), binding.SubscribeToTask,
				&a2apb.SubscribeToTaskRequest{Id: asked.GetId()}, binding.With("Last-Event-ID", id))
			require.NoError(t, err)
			if s == nil {
				invalidParams.check(t, c.Binding, answer)
				continue
			}
			first := (&stream{Stream: s, c: c}).task()
			s.Close()
			require.Equal(t, inputRequired, state(first), "Last-Event-ID: %s", id)
		}
	})
}

// Events are numbered by version: contiguous but for user messages, which are
// versions without an event.
func TestEventIDsAreVersions(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		events := c.sendStream(say("chunks 5")).rest()
		first, err := strconv.Atoi(events[0].ID)
		require.NoError(t, err)
		require.GreaterOrEqual(t, first, 1)
		for i, e := range events {
			require.Equal(t, strconv.Itoa(first+i), e.ID)
		}
		// SUBMITTED, WORKING, five chunks, COMPLETED.
		require.Equal(t, "8", events[len(events)-1].ID)
	})
}

// HTTP_JSON-URL-002, A2A §5.3, §11.3.2: the proto says GET, the text POST.
func TestSubscribeIsServedByGetAndByPost(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		c := callers(t, cluster, defaultAgent)[1]
		sent := c.send(say("ask"))
		var streams []*http.Response
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			for _, prefix := range []string{"", "/default", "/self.scripted", "/agents/scripted", "/agents/scripted/default.scripted"} {
				r, err := http.NewRequestWithContext(within(t), method, cluster.Client.URL+prefix+"/tasks/"+sent.GetId()+":subscribe", nil)
				require.NoError(t, err)
				r.Header = http.Header{"A2a-Version": {"1.0"}, "Accept": {"text/event-stream"}}
				got, err := cluster.Client.HTTP.Do(r)
				require.NoError(t, err)
				defer got.Body.Close()
				require.Equal(t, http.StatusOK, got.StatusCode, "%s %s", method, prefix)
				require.Equal(t, "text/event-stream", got.Header.Get("Content-Type"))
				streams = append(streams, got)
			}
		}
		c.cancel(sent.GetId())
		for _, got := range streams {
			body, err := io.ReadAll(got.Body)
			require.NoError(t, err)
			require.Contains(t, string(body), "TASK_STATE_INPUT_REQUIRED", got.Request.URL)
			require.Contains(t, string(body), "TASK_STATE_CANCELED", got.Request.URL)
		}
	})
}
