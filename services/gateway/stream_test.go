package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/sse"
	"github.com/errandhq/errand/pkg/task"
)

func openStream(t *testing.T, over binding, b *bench, operation, params string) *events {
	t.Helper()
	stream, refused := over.stream(t.Context(), b, operation, params)
	require.Nil(t, refused)
	return stream
}

// next reads one event and says what it is.
func next(t *testing.T, e *events) string {
	t.Helper()
	response, _ := e.read(t)
	if response == nil {
		return "end"
	}
	return describe(response)
}

func TestAStreamOfATurnBeginsWithTheTaskAndEndsWithIt(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		require.Equal(t, task.Submitted, first.GetTask().GetStatus().GetState())
		id := first.GetTask().GetId()
		b.store.emit(id, status(task.Working, ""), artifact("a", "one ", false))
		require.Equal(t, "status WORKING", next(t, stream))
		require.Equal(t, "artifact one ", next(t, stream))
		b.store.emit(id, artifact("a", "two", true), status(task.Completed, ""))
		require.Equal(t, []string{"artifact two", "status COMPLETED"}, stream.all(t))
	})
}

func TestAStreamOfATurnEndsWhenInputIsRequired(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		first := openStream(t, over, b, "SendStreamingMessage", say("m1", "ask")).all(t)
		require.Equal(t, "status INPUT_REQUIRED", first[len(first)-1])
		id := onlyTask(b)

		stream := openStream(t, over, b, "SendStreamingMessage", say("m2", "blue", `"taskId":"`+id+`"`))
		snapshot, _ := stream.read(t)
		require.NotNil(t, snapshot.GetTask(), "a follow-up begins with the task too")
		history := snapshot.GetTask().GetHistory()
		require.Equal(t, "blue", history[2].GetParts()[0].GetText(), "the new message is in it, behind the question")
		rest := stream.all(t)
		require.Equal(t, "status COMPLETED", rest[len(rest)-1])
	})
}

func onlyTask(b *bench) string {
	b.store.mu.Lock()
	defer b.store.mu.Unlock()
	for id := range b.store.tasks {
		return id
	}
	return ""
}

func TestStreamsStayOpenWhenAuthIsRequired(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		id := first.GetTask().GetId()
		b.store.emit(id, status(task.Working, ""), status(task.AuthRequired, "log in"))
		b.store.emit(id, status(task.Working, ""), status(task.Completed, ""))
		require.Equal(t, []string{"status WORKING", "status AUTH_REQUIRED", "status WORKING", "status COMPLETED"}, stream.all(t))
	})
}

func TestSubscriptionsOutliveInputRequired(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		id := over.call(t.Context(), b, "SendMessage", say("m1", "ask")).task(t).GetId()
		stream := openStream(t, over, b, "SubscribeToTask", `{"id":"`+id+`"}`)
		require.Equal(t, "task INPUT_REQUIRED", next(t, stream))
		require.Empty(t, stream.name, "a snapshot at the beginning replaces nothing")
		over.call(t.Context(), b, "SendMessage", say("m2", "blue", `"taskId":"`+id+`"`)).task(t)
		got := stream.all(t)
		require.Equal(t, "status WORKING", got[0], "the user's message itself is no event")
		require.Equal(t, "status COMPLETED", got[len(got)-1])
	})
}

func TestFinishedAndUnknownTasksCannotBeSubscribedTo(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		for _, end := range []task.State{task.Completed, task.Failed, task.Canceled, task.Rejected} {
			id := over.call(t.Context(), b, "SendMessage", atOnce(say(task.NewID(), "wait"))).task(t).GetId()
			b.store.emit(id, status(task.Working, ""), status(end, ""))
			_, refused := over.stream(t.Context(), b, "SubscribeToTask", `{"id":"`+id+`"}`)
			require.NotNil(t, refused)
			require.Equal(t, a2aerr.ReasonUnsupportedOperation, refused.reason)
			_, refused = over.stream(t.Context(), b, "SendStreamingMessage", say(task.NewID(), "x", `"taskId":"`+id+`"`))
			require.Equal(t, a2aerr.ReasonUnsupportedOperation, refused.reason)
		}
		_, refused := over.stream(t.Context(), b, "SubscribeToTask", `{"id":"tck-nonexistent"}`)
		require.Equal(t, a2aerr.ReasonTaskNotFound, refused.reason)
	})
}

func TestAgentsThatDoNotStreamSaySo(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		_, refused := over.stream(t.Context(), b, "SendStreamingMessage", to("self.quiet"))
		require.Equal(t, a2aerr.ReasonUnsupportedOperation, refused.reason)
		_, refused = over.stream(t.Context(), b, "SubscribeToTask", `{"tenant":"self.quiet","id":"nope"}`)
		require.Equal(t, a2aerr.ReasonUnsupportedOperation, refused.reason)
		require.Zero(t, b.store.writes)
	})
}

func TestAStreamingRetryGetsTheTaskAndTheRest(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		id := first.GetTask().GetId()
		stream.close()
		b.store.emit(id, status(task.Working, ""), artifact("a", "one", false))
		again := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		snapshot, _ := again.read(t)
		require.Equal(t, id, snapshot.GetTask().GetId())
		require.Len(t, snapshot.GetTask().GetArtifacts(), 1)
		b.store.emit(id, status(task.Completed, ""))
		require.Equal(t, []string{"status COMPLETED"}, again.all(t))
		require.Equal(t, []string{"task COMPLETED"}, openStream(t, over, b, "SendStreamingMessage", say("m1", "wait")).all(t))
	})
}

func TestAllStreamsOfATaskSeeTheSame(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := overREST{}.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t).GetId()
	var streams []*events
	for range 3 {
		for _, over := range bindings {
			streams = append(streams, openStream(t, over, b, "SubscribeToTask", `{"id":"`+id+`"}`))
		}
	}
	for _, s := range streams {
		require.Equal(t, "task SUBMITTED", next(t, s))
	}
	streams[0].close()
	want := []string{"status WORKING"}
	b.store.emit(id, status(task.Working, ""))
	for i := range 20 {
		text := fmt.Sprint("chunk ", i)
		b.store.emit(id, artifact("a", text, i > 0))
		want = append(want, "artifact "+text)
	}
	b.store.emit(id, status(task.Completed, ""))
	want = append(want, "status COMPLETED")
	for _, s := range streams[1:] {
		require.Equal(t, want, s.all(t))
	}
}

func TestNothingIsLostBetweenSnapshotAndStream(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var runs sync.WaitGroup
	for i := range 60 {
		runs.Go(func() {
			over := []binding{overGRPC{}, overREST{}, overJSONRPC{}}[i%3]
			id := over.call(t.Context(), b, "SendMessage", atOnce(say(task.NewID(), "wait"))).task(t).GetId()
			runs.Go(func() {
				b.store.emit(id, status(task.Working, ""))
				b.store.emit(id, artifact("a", "x", false))
				b.store.emit(id, status(task.Completed, ""))
			})
			stream, refused := over.stream(t.Context(), b, "SubscribeToTask", `{"id":"`+id+`"}`)
			if refused != nil {
				if refused.reason != a2aerr.ReasonUnsupportedOperation {
					t.Errorf("refused with %s", refused.reason)
				}
				return
			}
			got := stream.all(t)
			if len(got) < 2 || !strings.HasPrefix(got[0], "task ") || got[len(got)-1] != "status COMPLETED" {
				t.Errorf("stream was %v", got)
			}
		})
	}
	runs.Wait()
}

// resume opens a stream after an event id; both JSON bindings.
func resume(t *testing.T, b *bench, id, lastEventID string, over binding) *events {
	t.Helper()
	ctx := with(t.Context(), "A2A-Version", "1.0", "Last-Event-ID", lastEventID)
	stream, refused := over.stream(ctx, b, "SubscribeToTask", `{"id":"`+id+`"}`)
	require.Nil(t, refused)
	return stream
}

func onJSONBindings(t *testing.T, test func(t *testing.T, over binding)) {
	t.Helper()
	for name, over := range map[string]binding{"HTTP+JSON": overREST{}, "JSON-RPC": overJSONRPC{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, over)
		})
	}
}

func TestEventIDsAreVersionsAndResumeAStream(t *testing.T) {
	t.Parallel()
	onJSONBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, firstID := stream.read(t)
		require.Equal(t, "1", firstID)
		id := first.GetTask().GetId()
		b.store.emit(id, status(task.Working, ""), artifact("a", "1", false), artifact("a", "2", true), artifact("a", "3", true), artifact("a", "4", true))
		next(t, stream)
		_, lastID := stream.read(t)
		require.Equal(t, "3", lastID)
		stream.close()

		again := resume(t, b, id, lastID, over)
		r, eventID := again.read(t)
		require.Equal(t, "artifact 2", describe(r), "no task first")
		require.Empty(t, again.name)
		require.Equal(t, "4", eventID)
		b.store.emit(id, artifact("a", "5", true))
		require.Equal(t, "artifact 3", next(t, again))
		require.Equal(t, "artifact 4", next(t, again))
		require.Equal(t, "artifact 5", next(t, again))
		b.store.emit(id, status(task.Completed, ""))
		require.Equal(t, []string{"status COMPLETED"}, again.all(t))

		require.Equal(t, []string{"artifact 3", "artifact 4", "artifact 5", "status COMPLETED"}, resume(t, b, id, "4", over).all(t), "terminal tasks too")
		require.Empty(t, resume(t, b, id, "8", over).all(t), "nothing is left")
		all := resume(t, b, id, "0", over).all(t)
		require.Equal(t, "task SUBMITTED", all[0], "the creation is an event")
		require.Len(t, all, 8)
	})
}

func TestAStreamThatJoinsAnotherOneMissesNothing(t *testing.T) {
	t.Parallel()
	onJSONBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		ahead := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := ahead.read(t)
		id := first.GetTask().GetId()
		b.store.emit(id, status(task.Working, ""), artifact("a", "1", false))
		require.Equal(t, "status WORKING", next(t, ahead))
		require.Equal(t, "artifact 1", next(t, ahead))
		resumed := resume(t, b, id, "1", over)
		require.Equal(t, "status WORKING", next(t, resumed))
		require.Equal(t, "artifact 1", next(t, resumed))

		// The task moves on while the retry's answer is on its way.
		b.store.answering = func(string) {
			b.store.emit(id, artifact("a", "2", true))
			require.Equal(t, "artifact 2", next(t, ahead))
		}
		retried := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		snapshot, _ := retried.read(t)
		require.Len(t, snapshot.GetTask().GetArtifacts()[0].GetParts(), 2)
		b.store.emit(id, artifact("a", "3", true), status(task.Completed, ""))
		require.Equal(t, []string{"artifact 3", "status COMPLETED"}, ahead.all(t))
		require.Equal(t, []string{"artifact 3", "status COMPLETED"}, retried.all(t))
		require.Equal(t, []string{"artifact 2", "artifact 3", "status COMPLETED"}, resumed.all(t))
	})
}

func TestAResumeThatCannotBeExactBeginsWithTheTask(t *testing.T) {
	t.Parallel()
	onJSONBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		id := over.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t).GetId()
		b.store.emit(id, status(task.Working, ""), artifact("a", "1", false), artifact("a", "2", true))

		future := resume(t, b, id, "1000", over)
		r, eventID := future.read(t)
		require.Equal(t, "task WORKING", describe(r))
		require.Equal(t, "4", eventID)
		require.Equal(t, "resync", future.name)

		b.store.mu.Lock()
		b.store.purged = 3
		b.store.mu.Unlock()
		holed := resume(t, b, id, "1", over)
		require.Equal(t, "task WORKING", next(t, holed))
		require.Equal(t, "resync", holed.name)
		b.store.emit(id, artifact("a", "3", true), status(task.Completed, ""))
		require.Equal(t, []string{"artifact 3", "status COMPLETED"}, future.all(t))
		require.Equal(t, []string{"artifact 3", "status COMPLETED"}, holed.all(t))
		require.Empty(t, holed.name, "what follows a snapshot are events as ever")
		require.Equal(t, []string{"task COMPLETED"}, resume(t, b, id, "1", over).all(t))
		require.Equal(t, []string{"task COMPLETED"}, resume(t, b, id, "99", over).all(t))

		ctx := with(t.Context(), "A2A-Version", "1.0", "Last-Event-ID", "not ours")
		_, refused := over.stream(ctx, b, "SubscribeToTask", `{"id":"`+id+`"}`)
		require.Equal(t, a2aerr.ReasonUnsupportedOperation, refused.reason, "what is no id of ours is ignored")
		_, refused = over.stream(with(t.Context(), "A2A-Version", "1.0", "Last-Event-ID", "1"), b, "SubscribeToTask", `{"id":"nope"}`)
		require.Equal(t, a2aerr.ReasonTaskNotFound, refused.reason)
	})
}

func TestAStreamOfAMessageIsContinuedToo(t *testing.T) {
	t.Parallel()
	onJSONBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		asked := openStream(t, over, b, "SendStreamingMessage", say("m1", "ask")).all(t)
		require.Len(t, asked, 3)
		ctx := with(t.Context(), "A2A-Version", "1.0", "Last-Event-ID", "2")
		stream, refused := over.stream(ctx, b, "SendStreamingMessage", say("m1", "ask"))
		require.Nil(t, refused)
		require.Equal(t, []string{"status INPUT_REQUIRED"}, stream.all(t), "the turn is over, so is its stream")
		ctx = with(t.Context(), "A2A-Version", "1.0", "Last-Event-ID", "3")
		stream, refused = over.stream(ctx, b, "SendStreamingMessage", say("m1", "ask"))
		require.Nil(t, refused)
		require.Empty(t, stream.all(t))
	})
}

func TestErrorsBeforeAStreamArePlain(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, accept := range []string{"", "text/event-stream"} {
		res := b.send(t.Context(), http.MethodPost, "/tasks/nope:subscribe", "", "Accept", accept)
		require.Equal(t, http.StatusNotFound, res.StatusCode)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
		res = b.send(t.Context(), http.MethodPost, "/rpc", envelope("SubscribeToTask", `{"id":"nope"}`), "Accept", accept)
		require.Equal(t, http.StatusOK, res.StatusCode)
		require.Equal(t, "application/json", res.Header.Get("Content-Type"))
		require.Contains(t, b.body(res), `"code":-32001`)
	}
	res := b.send(t.Context(), http.MethodPost, "/rpc", envelope("SendStreamingMessage", `{}`), "Accept", "application/json")
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	require.Contains(t, b.body(res), `"code":-32602`)

	res = b.send(t.Context(), http.MethodPost, "/rpc", envelope("SendStreamingMessage", `{}`), "Accept", "text/event-stream")
	require.Equal(t, http.StatusOK, res.StatusCode)
	require.Equal(t, sse.MediaType, res.Header.Get("Content-Type"))
	e, err := sse.NewReader(res.Body, sse.DefaultMaxEvent).Next()
	require.NoError(t, err)
	require.Equal(t, "error", e.Name)
	require.Contains(t, string(e.Data), `{"jsonrpc":"2.0","id":"r1","error":{"code":-32602`)
}

func TestIdleStreamsShowSignsOfLife(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	id := overREST{}.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t).GetId()
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		res := b.send(t.Context(), method, "/self.echo/tasks/"+id+":subscribe", "", "Accept", "text/event-stream")
		require.Equal(t, "no", res.Header.Get("X-Accel-Buffering"))
		require.Equal(t, "no-cache", res.Header.Get("Cache-Control"))
		lines := bufio.NewScanner(res.Body)
		alive := 0
		for alive < 2 && lines.Scan() {
			if lines.Text() == ": keep-alive" {
				alive++
			}
		}
		require.Equal(t, 2, alive, method)
	}
}

func TestOnlySoManyStreamsAreOpen(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {streams: 1, ", 1)))
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		stream.read(t)
		_, refused := over.stream(t.Context(), b, "SendStreamingMessage", say("m2", "wait"))
		require.NotNil(t, refused)
		require.Equal(t, a2aerr.ReasonUnavailable, refused.reason)
		require.Len(t, b.store.tasks, 1)
		stream.close()
		require.Eventually(t, func() bool {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			_, refused := over.stream(ctx, b, "SubscribeToTask", `{"id":"`+onlyTask(b)+`"}`)
			return refused == nil
		}, 10*time.Second, 10*time.Millisecond)
	})
}

func TestASubscriberThatFellBehindGetsASnapshot(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {subscriber_buffer: 1, ", 1)))
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		id := first.GetTask().GetId()
		b.store.emit(id, status(task.Working, ""))
		const chunks = 500
		for i := range chunks {
			b.store.emit(id, artifact("a", fmt.Sprint(i, " ", strings.Repeat("x", 2000)), i > 0))
		}
		b.store.emit(id, status(task.Completed, ""))
		seen := 0 // parts of the artifact that the stream has shown
		for {
			response, _ := stream.read(t)
			if response == nil {
				break
			}
			if shown := response.GetTask(); shown != nil {
				seen = 0
				for _, a := range shown.GetArtifacts() {
					seen = len(a.GetParts())
				}
			}
			if chunk := response.GetArtifactUpdate(); chunk != nil {
				require.True(t, strings.HasPrefix(chunk.GetArtifact().GetParts()[0].GetText(), fmt.Sprint(seen, " ")), "no hole, no repeat")
				seen++
			}
		}
		require.Equal(t, chunks, seen)
	})
}

func TestAGapInWhichNothingHappenedIsNotShown(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		// A sign of life would end the read that is looked at, and begin another.
		b := newBench(t, withAgents(strings.Replace(defaultAgents, "keep_alive: 100ms", "keep_alive: 1m", 1)))
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		id := first.GetTask().GetId()
		b.store.emit(id, status(task.Working, ""))
		require.Equal(t, "status WORKING", next(t, stream))
		reads := b.store.gap(id)
		require.EqualValues(t, 2, <-reads)
		b.store.emit(id, status(task.Completed, ""))
		require.Equal(t, []string{"status COMPLETED"}, stream.all(t))
	})
}

func TestLargeEventsArriveWhole(t *testing.T) {
	t.Parallel()
	onJSONBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		stream := openStream(t, over, b, "SendStreamingMessage", say("m1", "wait"))
		first, _ := stream.read(t)
		large := strings.Repeat("x", 3_000_000)
		b.store.emit(first.GetTask().GetId(), status(task.Working, ""), artifact("a", large, false), status(task.Completed, ""))
		require.Equal(t, []string{"status WORKING", "artifact " + large, "status COMPLETED"}, stream.all(t))
	})
}

func TestHistoryLengthAppliesToTheTaskOfAStream(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		stream := openStream(t, over, b, "SendStreamingMessage", strings.TrimSuffix(say("m1", "wait"), "}")+`,"configuration":{"historyLength":0}}`)
		first, _ := stream.read(t)
		require.Empty(t, first.GetTask().GetHistory())
	})
}
