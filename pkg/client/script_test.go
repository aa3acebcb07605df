package client_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/client"
)

// call is one request to a scripted agent, the same for both HTTP bindings.
type call struct {
	http.ResponseWriter

	request *http.Request
	binding string
	// The operation's name in A2A.
	operation string
	// The request message, or the query's members.
	params map[string]any
	// How often the operation was called before.
	before int
}

// script runs an agent whose every answer the test writes.
func script(t *testing.T, binding string, opts client.Options, answer func(*call)) *client.Client {
	t.Helper()
	s := &scripted{binding: binding, answer: answer, calls: map[string]int{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	opts.Bindings = []string{binding}
	if opts.Retry.First == 0 {
		opts.Retry.First, opts.Retry.Slowest = time.Millisecond, 5*time.Millisecond
	}
	streaming := true
	c, err := client.FromCard(&a2apb.AgentCard{
		Capabilities: &a2apb.AgentCapabilities{Streaming: &streaming},
		SupportedInterfaces: []*a2apb.AgentInterface{
			{Url: server.URL + "/base/", ProtocolBinding: binding, ProtocolVersion: "1.0"},
		},
	}, opts)
	require.NoError(t, err)
	return c
}

func onBothHTTPBindings(t *testing.T, test func(t *testing.T, binding string)) {
	t.Helper()
	for _, binding := range []string{client.JSONRPC, client.HTTPJSON} {
		t.Run(binding, func(t *testing.T) {
			t.Parallel()
			test(t, binding)
		})
	}
}

type scripted struct {
	binding string
	answer  func(*call)

	mu    sync.Mutex
	calls map[string]int
}

func (s *scripted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := &call{ResponseWriter: w, request: r, binding: s.binding, params: map[string]any{}}
	body, _ := io.ReadAll(r.Body)
	if s.binding == client.JSONRPC {
		var envelope struct {
			Method string         `json:"method"`
			Params map[string]any `json:"params"`
		}
		_ = json.Unmarshal(body, &envelope)
		c.operation, c.params = envelope.Method, envelope.Params
	} else {
		c.operation = restOperation(r)
		_ = json.Unmarshal(body, &c.params)
		for name, values := range r.URL.Query() {
			c.params[name] = values[0]
		}
	}
	s.mu.Lock()
	c.before = s.calls[c.operation]
	s.calls[c.operation]++
	s.mu.Unlock()
	s.answer(c)
}

func restOperation(r *http.Request) string {
	path := r.URL.EscapedPath()
	for suffix, operation := range map[string]string{
		"/message:send": "SendMessage", "/message:stream": "SendStreamingMessage",
		":cancel": "CancelTask", ":subscribe": "SubscribeToTask", "/tasks": "ListTasks",
	} {
		if strings.HasSuffix(path, suffix) {
			return operation
		}
	}
	return "GetTask"
}

// result answers with a JSON object.
func (c *call) result(object string) {
	c.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(c, c.framed(object))
}

func (c *call) framed(object string) string {
	if c.binding == client.JSONRPC {
		return `{"jsonrpc":"2.0","id":"1","result":` + object + `}`
	}
	return object
}

// refuse answers with an error of A2A.
func (c *call) refuse(status int, code int, reason string, details ...string) {
	c.Header().Set("Content-Type", "application/json")
	if c.binding == client.HTTPJSON {
		c.WriteHeader(status)
	}
	_, _ = io.WriteString(c, c.refusal(status, code, reason, details...))
}

func (c *call) refusal(status int, code int, reason string, details ...string) string {
	info := `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"a2a-protocol.org","reason":"` + reason + `"}`
	all := strings.Join(append([]string{`{"@type":"type.googleapis.com/not.Known"}`, info}, details...), ",")
	if c.binding == client.JSONRPC {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":"1","error":{"code":%d,"message":"no","data":[%s]}}`, code, all)
	}
	return fmt.Sprintf(`{"error":{"code":%d,"status":"X","message":"no","details":[%s]}}`, status, all)
}

// event writes one event of a stream; the id may be empty.
func (c *call) event(id, object string) {
	c.Header().Set("Content-Type", "text/event-stream")
	if id != "" {
		fmt.Fprintf(c, "id: %s\n", id)
	}
	fmt.Fprintf(c, "data: %s\n\n", c.framed(object))
	_ = http.NewResponseController(c.ResponseWriter).Flush()
}

// resync writes an event that takes the place of others.
func (c *call) resync(id, object string) {
	c.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(c, "id: %s\nevent: resync\ndata: %s\n\n", id, c.framed(object))
}

// cut breaks the connection.
func (c *call) cut() { panic(http.ErrAbortHandler) }

func taskJSON(state string, artifact ...string) string {
	parts := ""
	for i, text := range artifact {
		if i > 0 {
			parts += ","
		}
		parts += fmt.Sprintf(`{"text":%q}`, text)
	}
	artifacts := ""
	if parts != "" {
		artifacts = `,"artifacts":[{"artifactId":"a","parts":[` + parts + `]}]`
	}
	return fmt.Sprintf(`{"id":"t","contextId":"c","status":{"state":"TASK_STATE_%s"}%s}`, state, artifacts)
}

func taskEvent(state string, artifact ...string) string {
	return `{"task":` + taskJSON(state, artifact...) + `}`
}

func statusEvent(state string) string {
	return fmt.Sprintf(`{"statusUpdate":{"taskId":"t","contextId":"c","status":{"state":"TASK_STATE_%s"}}}`, state)
}

func chunkEvent(appended bool, text string) string {
	return fmt.Sprintf(`{"artifactUpdate":{"taskId":"t","contextId":"c","append":%t,"artifact":{"artifactId":"a","parts":[{"text":%q}]}}}`,
		appended, text)
}

// follow reads a stream to its end and returns the last task and the error.
func follow(t *testing.T, c *client.Client) (last *a2apb.Task, updates int, failed error) {
	t.Helper()
	for update, err := range c.Stream(t.Context(), send("go")) {
		if err != nil {
			return last, updates, err
		}
		last = update.Task
		updates++
	}
	return last, updates, nil
}
