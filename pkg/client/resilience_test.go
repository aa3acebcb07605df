package client_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/client"
)

func TestLostAnswerIsAskedForUnderTheSameMessageID(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		var mu sync.Mutex
		var sent []any
		c := script(t, binding, client.Options{}, func(c *call) {
			mu.Lock()
			sent = append(sent, c.params["message"])
			mu.Unlock()
			if c.before < 2 {
				c.cut()
			}
			c.result(taskEvent("COMPLETED"))
		})
		request := &a2apb.SendMessageRequest{Message: &a2apb.Message{Parts: []*a2apb.Part{client.Text("go")}}}
		response, err := c.Send(t.Context(), request)
		require.NoError(t, err)
		require.Equal(t, "COMPLETED", state(response.GetTask()))
		mu.Lock()
		defer mu.Unlock()
		require.Len(t, sent, 3)
		require.Equal(t, sent[0], sent[1])
		require.Equal(t, sent[0], sent[2])
		require.NotEmpty(t, sent[0].(map[string]any)["messageId"])
		require.Equal(t, "ROLE_USER", sent[0].(map[string]any)["role"])
		require.Empty(t, request.GetMessage().GetMessageId(), "the caller's request is left alone")
	})
}

func TestSendGivesUpAfterTheAttemptsThatAreAllowed(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	c := script(t, client.JSONRPC, client.Options{Retry: client.Retry{Attempts: 3, First: time.Millisecond}}, func(c *call) {
		calls.Add(1)
		c.cut()
	})
	_, err := c.Send(t.Context(), send("go"))
	require.ErrorIs(t, err, client.ErrConnection)
	require.EqualValues(t, 3, calls.Load())
}

func TestRefusalIsNotRepeated(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		var calls atomic.Int32
		c := script(t, binding, client.Options{}, func(c *call) {
			calls.Add(1)
			c.refuse(http.StatusBadRequest, -32602, "INVALID_PARAMS", `{"@type":"type.googleapis.com/google.rpc.BadRequest",`+
				`"fieldViolations":[{"field":"message.parts","description":"must not be empty"}]}`)
		})
		_, err := c.Send(t.Context(), send("go"))
		require.ErrorIs(t, err, client.ErrInvalidParams)
		var typed *client.Error
		require.ErrorAs(t, err, &typed)
		require.Len(t, typed.Details, 2)
		require.EqualValues(t, 1, calls.Load())
	})
}

func TestUnavailableServerIsAskedAgainWhenItSays(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			if c.before == 0 {
				c.refuse(http.StatusServiceUnavailable, -32000, "UNAVAILABLE",
					`{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"0.100s"}`)
				return
			}
			c.result(taskJSON("WORKING"))
		})
		begin := time.Now()
		_, err := c.Get(t.Context(), &a2apb.GetTaskRequest{Id: "t"})
		require.NoError(t, err)
		require.GreaterOrEqual(t, time.Since(begin), 100*time.Millisecond)
	})
}

func TestEndOfTheContextEndsRetries(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := script(t, client.JSONRPC, client.Options{Retry: client.Retry{First: time.Hour}}, func(c *call) {
		cancel()
		c.cut()
	})
	_, err := c.Send(ctx, send("go"))
	require.ErrorIs(t, err, context.Canceled)
}

func TestCutStreamGoesOnAfterTheLastEventID(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			switch {
			case c.operation == "SendStreamingMessage":
				c.event("1", taskEvent("SUBMITTED"))
				c.event("2", chunkEvent(false, "one "))
				c.cut()
			case c.before == 0:
				require.Equal(t, "2", c.request.Header.Get("Last-Event-ID"))
				c.event("3", chunkEvent(true, "two "))
				c.cut()
			default:
				require.Equal(t, "3", c.request.Header.Get("Last-Event-ID"))
				c.event("4", chunkEvent(true, "three"))
				c.event("5", statusEvent("COMPLETED"))
			}
		})
		task, updates, err := follow(t, c)
		require.NoError(t, err)
		require.Equal(t, 5, updates)
		require.Equal(t, "one two three", artifact(t, task))
	})
}

func TestATaskInThePlaceOfEventsIsToldAsSuch(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			if c.operation == "SendStreamingMessage" {
				c.event("1", taskEvent("SUBMITTED"))
				c.cut()
			}
			c.resync("7", taskEvent("WORKING"))
			c.event("8", statusEvent("COMPLETED"))
		})
		var resyncs []bool
		for update, err := range c.Stream(t.Context(), send("go")) {
			require.NoError(t, err)
			resyncs = append(resyncs, update.Resync)
		}
		require.Equal(t, []bool{false, true, false}, resyncs)
	})
}

func TestCutStreamWithoutIDsStartsAgainFromTheTask(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			if c.operation == "SendStreamingMessage" {
				c.event("", taskEvent("SUBMITTED"))
				c.event("", chunkEvent(false, "one "))
				c.cut()
			}
			require.Empty(t, c.request.Header.Get("Last-Event-ID"))
			c.event("", taskEvent("WORKING", "one ", "two "))
			c.event("", chunkEvent(true, "three"))
			c.event("", statusEvent("COMPLETED"))
		})
		task, updates, err := follow(t, c)
		require.NoError(t, err)
		require.Equal(t, 5, updates)
		require.Equal(t, "one two three", artifact(t, task))
	})
}

func TestStreamThatNeverBeganIsSentAgain(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			require.Equal(t, "SendStreamingMessage", c.operation)
			switch c.before {
			case 0:
				c.cut()
			case 1:
				c.Header().Set("Content-Type", "text/event-stream") // An empty stream.
			default:
				c.event("", taskEvent("SUBMITTED"))
				c.event("", statusEvent("COMPLETED"))
			}
		})
		_, updates, err := follow(t, c)
		require.NoError(t, err)
		require.Equal(t, 2, updates)
	})
}

func TestStreamClosedInGoodOrderIsResumed(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		if c.operation == "SendStreamingMessage" {
			c.event("1", taskEvent("SUBMITTED"))
			return // A server that shuts down.
		}
		c.event("2", statusEvent("COMPLETED"))
	})
	task, _, err := follow(t, c)
	require.NoError(t, err)
	require.Equal(t, "COMPLETED", state(task))
}

func TestTaskIsPolledWhereItCannotBeStreamed(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		var subscribes atomic.Int32
		c := script(t, binding, client.Options{}, func(c *call) {
			switch c.operation {
			case "SendStreamingMessage":
				c.event("", taskEvent("SUBMITTED"))
				c.cut()
			case "SubscribeToTask":
				subscribes.Add(1)
				c.refuse(http.StatusBadRequest, -32004, "UNSUPPORTED_OPERATION")
			case "GetTask":
				if c.before < 3 {
					c.result(taskJSON("WORKING", "one "))
					return
				}
				c.result(taskJSON("COMPLETED", "one ", "two"))
			}
		})
		task, updates, err := follow(t, c)
		require.NoError(t, err)
		require.Equal(t, "one two", artifact(t, task))
		require.Equal(t, 3, updates, "what hasn't changed is no update")
		require.EqualValues(t, 1, subscribes.Load())
	})
}

func TestStreamWithoutAnyConnectionFailsInTheEnd(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{Retry: client.Retry{Attempts: 3, First: time.Millisecond}}, func(c *call) {
		if c.operation == "SendStreamingMessage" {
			c.event("", taskEvent("SUBMITTED"))
		}
		c.cut()
	})
	task, _, err := follow(t, c)
	require.ErrorIs(t, err, client.ErrConnection)
	require.Equal(t, "SUBMITTED", state(task))
}

func TestErrorAmidAStreamLeadsToTheTask(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			switch c.operation {
			case "GetTask":
				c.result(taskJSON("FAILED"))
			case "SubscribeToTask":
				c.refuse(http.StatusBadRequest, -32004, "UNSUPPORTED_OPERATION")
			default:
				c.event("", taskEvent("WORKING"))
				_, _ = c.Write([]byte("event: error\ndata: " + c.refusal(500, -32603, "INTERNAL_ERROR") + "\n\n"))
			}
		})
		task, _, err := follow(t, c)
		require.NoError(t, err)
		require.Equal(t, "FAILED", state(task))
	})
}

func TestErrorBeforeAStreamIsTyped(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		for _, framed := range []bool{false, true} {
			c := script(t, binding, client.Options{}, func(c *call) {
				if framed {
					c.Header().Set("Content-Type", "text/event-stream")
					_, _ = c.Write([]byte("data: " + c.refusal(400, -32602, "INVALID_PARAMS") + "\n\n"))
					return
				}
				c.refuse(http.StatusBadRequest, -32602, "INVALID_PARAMS")
			})
			_, _, err := follow(t, c)
			require.ErrorIs(t, err, client.ErrInvalidParams)
		}
	})
}

func TestChunkOfAnUnknownArtifactLeadsToAFreshTaskOnce(t *testing.T) {
	t.Parallel()
	for _, heals := range []bool{true, false} {
		c := script(t, client.HTTPJSON, client.Options{}, func(c *call) {
			if c.operation == "SubscribeToTask" {
				require.Empty(t, c.request.Header.Get("Last-Event-ID"))
				if heals {
					c.event("2", taskEvent("WORKING", "one "))
				}
			} else {
				c.event("1", taskEvent("SUBMITTED"))
			}
			c.event("3", chunkEvent(true, "two"))
			c.event("4", statusEvent("COMPLETED"))
		})
		task, _, err := follow(t, c)
		if heals {
			require.NoError(t, err)
			require.Equal(t, "one two", artifact(t, task))
		} else {
			require.ErrorIs(t, err, client.ErrProtocol)
		}
	}
}

func TestEventsOfAnotherTaskAreRefused(t *testing.T) {
	t.Parallel()
	c := script(t, client.HTTPJSON, client.Options{}, func(c *call) {
		c.event("1", taskEvent("SUBMITTED"))
		c.event("2", strings.ReplaceAll(statusEvent("COMPLETED"), `"t"`, `"u"`))
	})
	_, _, err := follow(t, c)
	require.ErrorIs(t, err, client.ErrProtocol)
}

func TestSilentStreamCountsAsCut(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{Idle: 50 * time.Millisecond}, func(c *call) {
		if c.operation == "SendStreamingMessage" {
			c.event("1", taskEvent("SUBMITTED"))
			<-c.request.Context().Done()
			return
		}
		c.event("2", statusEvent("COMPLETED"))
	})
	task, _, err := follow(t, c)
	require.NoError(t, err)
	require.Equal(t, "COMPLETED", state(task))
}

func TestStreamStaysOpenThroughAuthRequired(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		c.event("1", taskEvent("SUBMITTED"))
		c.event("2", statusEvent("AUTH_REQUIRED"))
		c.event("3", statusEvent("WORKING"))
		c.event("4", statusEvent("COMPLETED"))
	})
	task, updates, err := follow(t, c)
	require.NoError(t, err)
	require.Equal(t, 4, updates)
	require.Equal(t, "COMPLETED", state(task))
}

func TestStreamClosedWhileAuthorizationIsDueIsResumed(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		if c.operation == "SendStreamingMessage" {
			c.event("1", taskEvent("SUBMITTED"))
			c.event("2", statusEvent("AUTH_REQUIRED"))
			return
		}
		c.event("3", statusEvent("WORKING"))
		c.event("4", statusEvent("COMPLETED"))
	})
	task, _, err := follow(t, c)
	require.NoError(t, err)
	require.Equal(t, "COMPLETED", state(task))
}

func TestSubscriptionEndsWhereTheServerKeepsClosingAnInterruptedTask(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		c.event("", taskEvent("INPUT_REQUIRED"))
	})
	updates := 0
	for update, err := range c.Subscribe(t.Context(), &a2apb.SubscribeToTaskRequest{Id: "t"}) {
		require.NoError(t, err)
		require.Equal(t, "INPUT_REQUIRED", state(update.Task))
		updates++
	}
	require.Equal(t, 1, updates)
}

func TestFollowUpIsNotEndedByTheQuestionItAnswers(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		c.event("1", taskEvent("INPUT_REQUIRED"))
		c.event("2", statusEvent("WORKING"))
		c.event("3", statusEvent("INPUT_REQUIRED"))
		<-c.request.Context().Done() // A server that leaves the closing to us.
	})
	_, updates, err := follow(t, c)
	require.NoError(t, err)
	require.Equal(t, 3, updates)
}

func TestAgentWithoutStreamsIsSentToAndPolled(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		switch c.operation {
		case "SendMessage":
			require.Equal(t, true, c.params["configuration"].(map[string]any)["returnImmediately"])
			c.result(taskEvent("SUBMITTED"))
		case "GetTask":
			c.result(taskJSON("COMPLETED", "all"))
		default:
			t.Errorf("%s was called", c.operation)
		}
	})
	*c.Card().Capabilities.Streaming = false
	task, updates, err := follow(t, c)
	require.NoError(t, err)
	require.Equal(t, 2, updates)
	require.Equal(t, "all", artifact(t, task))
}

func TestLargeEventsAreReadWhole(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		big := strings.Repeat("x", 9_000_000)
		c := script(t, binding, client.Options{}, func(c *call) {
			c.event("1", taskEvent("SUBMITTED"))
			c.event("2", chunkEvent(false, big))
			c.event("3", statusEvent("COMPLETED"))
		})
		task, _, err := follow(t, c)
		require.NoError(t, err)
		require.Len(t, artifact(t, task), len(big))
	})
}

func TestEventOverTheLimitIsAnErrorAndNoEnd(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{MaxEvent: 1000}, func(c *call) {
		c.event("1", taskEvent("SUBMITTED"))
		c.event("2", chunkEvent(false, strings.Repeat("x", 2000)))
		c.event("3", statusEvent("COMPLETED"))
	})
	_, _, err := follow(t, c)
	require.ErrorIs(t, err, client.ErrProtocol)
}
