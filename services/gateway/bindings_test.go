package gateway_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	grpcstatus "google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/sse"
)

// binding speaks one of the three wire forms. Requests and results are the
// ProtoJSON of the operation's messages.
type binding interface {
	call(ctx context.Context, b *bench, operation, params string) outcome
	stream(ctx context.Context, b *bench, operation, params string) (*events, *failed)
}

var bindings = map[string]binding{"gRPC": overGRPC{}, "HTTP+JSON": overREST{}, "JSON-RPC": overJSONRPC{}}

// onAllBindings runs a test once for each binding.
func onAllBindings(t *testing.T, test func(t *testing.T, over binding)) {
	t.Helper()
	for name, over := range bindings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, over)
		})
	}
}

// outcome is the answer to a call.
type outcome struct {
	result string
	failed *failed
	header http.Header // of HTTP
}

// failed is an error as a client sees it, whatever the binding.
type failed struct {
	reason, field, message string
	code                   string // gRPC code
	http, jsonrpc          int    // 0 where the binding has none
	// Of the RetryInfo; 0 without one.
	retry time.Duration
}

func (o outcome) message(t *testing.T, m proto.Message) {
	t.Helper()
	require.Nil(t, o.failed, "%+v", o.failed)
	require.NoError(t, protojson.Unmarshal([]byte(o.result), m), o.result)
}

func (o outcome) task(t *testing.T) *a2apb.Task {
	t.Helper()
	var r a2apb.SendMessageResponse
	if strings.HasPrefix(o.result, `{"task"`) {
		o.message(t, &r)
		return r.GetTask()
	}
	task := &a2apb.Task{}
	o.message(t, task)
	return task
}

// events are what a stream brings.
type events struct {
	next  func() (*a2apb.StreamResponse, string, error)
	close func()
	// Of the last event; empty on gRPC.
	name string
}

// read returns the next response and its id; nil at the end.
func (e *events) read(t *testing.T) (*a2apb.StreamResponse, string) {
	t.Helper()
	type got struct {
		response *a2apb.StreamResponse
		id       string
		err      error
	}
	result := make(chan got, 1)
	go func() {
		response, id, err := e.next()
		result <- got{response, id, err}
	}()
	select {
	case g := <-result:
		if errors.Is(g.err, io.EOF) {
			return nil, ""
		}
		require.NoError(t, g.err)
		return g.response, g.id
	case <-time.After(10 * time.Second):
		e.close()
		require.Fail(t, "no event came")
		return nil, ""
	}
}

// all reads to the end and describes each event.
func (e *events) all(t *testing.T) []string {
	t.Helper()
	var all []string
	for {
		response, _ := e.read(t)
		if response == nil {
			return all
		}
		all = append(all, describe(response))
	}
}

func describe(r *a2apb.StreamResponse) string {
	switch p := r.GetPayload().(type) {
	case *a2apb.StreamResponse_Task:
		return "task " + short(p.Task.GetStatus().GetState())
	case *a2apb.StreamResponse_Message:
		return "message " + p.Message.GetParts()[0].GetText()
	case *a2apb.StreamResponse_StatusUpdate:
		return "status " + short(p.StatusUpdate.GetStatus().GetState())
	case *a2apb.StreamResponse_ArtifactUpdate:
		return "artifact " + p.ArtifactUpdate.GetArtifact().GetParts()[0].GetText()
	}
	return "nothing"
}

func short(s a2apb.TaskState) string { return strings.TrimPrefix(s.String(), "TASK_STATE_") }

// Metadata that a test sends along, on every binding.
type metadataKey struct{}

func with(ctx context.Context, pairs ...string) context.Context {
	return context.WithValue(ctx, metadataKey{}, pairs)
}

type chunkedKey struct{}

// chunked makes HTTP requests that don't tell the length of their body.
func chunked(ctx context.Context) context.Context {
	return context.WithValue(ctx, chunkedKey{}, true)
}

// pairs are the request's metadata: the protocol version unless the test sets some.
func pairs(ctx context.Context) []string {
	if p, ok := ctx.Value(metadataKey{}).([]string); ok {
		return p
	}
	return []string{"A2A-Version", "1.0"}
}

type overGRPC struct{}

// messages has a request and a response for each operation.
var messages = map[string][2]proto.Message{
	"SendMessage":                      {&a2apb.SendMessageRequest{}, &a2apb.SendMessageResponse{}},
	"SendStreamingMessage":             {&a2apb.SendMessageRequest{}, &a2apb.StreamResponse{}},
	"GetTask":                          {&a2apb.GetTaskRequest{}, &a2apb.Task{}},
	"ListTasks":                        {&a2apb.ListTasksRequest{}, &a2apb.ListTasksResponse{}},
	"CancelTask":                       {&a2apb.CancelTaskRequest{}, &a2apb.Task{}},
	"SubscribeToTask":                  {&a2apb.SubscribeToTaskRequest{}, &a2apb.StreamResponse{}},
	"CreateTaskPushNotificationConfig": {&a2apb.TaskPushNotificationConfig{}, &a2apb.TaskPushNotificationConfig{}},
	"GetTaskPushNotificationConfig":    {&a2apb.GetTaskPushNotificationConfigRequest{}, &a2apb.TaskPushNotificationConfig{}},
	"ListTaskPushNotificationConfigs":  {&a2apb.ListTaskPushNotificationConfigsRequest{}, &a2apb.ListTaskPushNotificationConfigsResponse{}},
	"DeleteTaskPushNotificationConfig": {&a2apb.DeleteTaskPushNotificationConfigRequest{}, &emptypb.Empty{}},
	"GetExtendedAgentCard":             {&a2apb.GetExtendedAgentCardRequest{}, &a2apb.AgentCard{}},
}

func request(operation, params string) proto.Message {
	r := proto.Clone(messages[operation][0])
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal([]byte(params), r); err != nil {
		panic(err)
	}
	return r
}

func outgoing(ctx context.Context) context.Context {
	return metadata.NewOutgoingContext(ctx, metadata.Pairs(pairs(ctx)...))
}

func (overGRPC) call(ctx context.Context, b *bench, operation, params string) outcome {
	response := proto.Clone(messages[operation][1])
	err := b.grpc.Invoke(outgoing(ctx), "/lf.a2a.v1.A2AService/"+operation, request(operation, params), response)
	if err != nil {
		return outcome{failed: fromGRPC(err)}
	}
	text, err := protojson.Marshal(response)
	require.NoError(b.t, err)
	return outcome{result: string(text)}
}

func fromGRPC(err error) *failed {
	e := a2aerr.From(err)
	f := &failed{reason: e.Reason, message: e.Message, code: grpcstatus.Code(err).String(), retry: e.RetryAfter()}
	for _, d := range e.Details {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			f.field = bad.GetFieldViolations()[0].GetField()
		}
	}
	return f
}

func (overGRPC) stream(ctx context.Context, b *bench, operation, params string) (*events, *failed) {
	ctx, cancel := context.WithCancel(outgoing(ctx))
	s, err := b.grpc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, "/lf.a2a.v1.A2AService/"+operation)
	require.NoError(b.t, err)
	require.NoError(b.t, s.SendMsg(request(operation, params)))
	require.NoError(b.t, s.CloseSend())
	first := &a2apb.StreamResponse{}
	if err := s.RecvMsg(first); err != nil {
		cancel()
		if errors.Is(err, io.EOF) {
			return &events{next: func() (*a2apb.StreamResponse, string, error) { return nil, "", io.EOF }, close: cancel}, nil
		}
		return nil, fromGRPC(err)
	}
	b.t.Cleanup(cancel)
	return &events{close: cancel, next: func() (*a2apb.StreamResponse, string, error) {
		if r := first; r != nil {
			first = nil
			return r, "", nil
		}
		r := &a2apb.StreamResponse{}
		return r, "", s.RecvMsg(r)
	}}, nil
}

// send makes an HTTP request with the test's metadata.
func (b *bench) send(ctx context.Context, method, path, body string, headers ...string) *http.Response {
	b.t.Helper()
	res, err := b.request(ctx, method, path, body, headers...)
	require.NoError(b.t, err)
	b.t.Cleanup(func() { res.Body.Close() })
	return res
}

func (b *bench) request(ctx context.Context, method, path, body string, headers ...string) (*http.Response, error) {
	var content io.Reader = strings.NewReader(body)
	if ctx.Value(chunkedKey{}) != nil {
		content = io.MultiReader(content) // hides the length
	}
	r, err := http.NewRequestWithContext(ctx, method, b.base+path, content)
	if err != nil {
		return nil, err
	}
	if method == http.MethodPost {
		r.Header.Set("Content-Type", "application/json")
	}
	p := pairs(ctx)
	for i := 0; i < len(p); i += 2 {
		r.Header.Add(p[i], p[i+1])
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return b.http.Do(r)
}

func (b *bench) body(res *http.Response) string {
	b.t.Helper()
	text, err := io.ReadAll(res.Body)
	require.NoError(b.t, err)
	return string(text)
}

type overREST struct{}

// route is where an operation is served.
func route(operation, params string) (method, path, body string) {
	var p map[string]any
	if err := json.Unmarshal([]byte(params), &p); err != nil {
		panic(err)
	}
	take := func(name string) string {
		v, _ := p[name].(string)
		delete(p, name)
		return url.PathEscape(v)
	}
	prefix := ""
	if tenant := take("tenant"); tenant != "" {
		prefix = "/" + tenant
	}
	switch operation {
	case "SendMessage":
		return http.MethodPost, prefix + "/message:send", params
	case "SendStreamingMessage":
		return http.MethodPost, prefix + "/message:stream", params
	case "GetTask":
		return http.MethodGet, prefix + "/tasks/" + take("id") + query(p), ""
	case "ListTasks":
		return http.MethodGet, prefix + "/tasks" + query(p), ""
	case "CancelTask":
		return http.MethodPost, prefix + "/tasks/" + take("id") + ":cancel", params
	case "SubscribeToTask":
		return http.MethodPost, prefix + "/tasks/" + take("id") + ":subscribe", ""
	case "GetExtendedAgentCard":
		return http.MethodGet, prefix + "/extendedAgentCard", ""
	}
	configs := prefix + "/tasks/" + take("taskId") + "/pushNotificationConfigs"
	switch operation {
	case "CreateTaskPushNotificationConfig":
		return http.MethodPost, configs, params
	case "ListTaskPushNotificationConfigs":
		return http.MethodGet, configs, ""
	case "GetTaskPushNotificationConfig":
		return http.MethodGet, configs + "/" + take("id"), ""
	}
	return http.MethodDelete, configs + "/" + take("id"), ""
}

func query(p map[string]any) string {
	q := url.Values{}
	for name, v := range p {
		q.Set(name, fmt.Sprint(v))
	}
	return "?" + q.Encode()
}

func (overREST) call(ctx context.Context, b *bench, operation, params string) outcome {
	method, path, body := route(operation, params)
	res := b.send(ctx, method, path, body)
	text := b.body(res)
	if res.StatusCode != http.StatusOK {
		return outcome{failed: fromREST(b.t, res.StatusCode, text), header: res.Header}
	}
	return outcome{result: text, header: res.Header}
}

// wireError is an error object of either JSON binding.
type wireError struct {
	Code    int          `json:"code"`
	Status  string       `json:"status"`
	Message string       `json:"message"`
	Details []wireDetail `json:"details"`
	Data    []wireDetail `json:"data"`
}

type wireDetail struct {
	Reason          string `json:"reason"`
	RetryDelay      string `json:"retryDelay"`
	FieldViolations []struct {
		Field string `json:"field"`
	} `json:"fieldViolations"`
}

func (e wireError) failed() *failed {
	f := &failed{message: e.Message, code: e.Status}
	for _, d := range append(e.Details, e.Data...) {
		if d.Reason != "" {
			f.reason = d.Reason
		}
		if d.RetryDelay != "" {
			var err error
			if f.retry, err = time.ParseDuration(d.RetryDelay); err != nil {
				panic(err)
			}
		}
		if len(d.FieldViolations) > 0 {
			f.field = d.FieldViolations[0].Field
		}
	}
	return f
}

func fromREST(t *testing.T, status int, text string) *failed {
	t.Helper()
	var body struct {
		Error wireError `json:"error"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &body), text)
	require.Equal(t, status, body.Error.Code)
	f := body.Error.failed()
	f.http = status
	return f
}

func (overREST) stream(ctx context.Context, b *bench, operation, params string) (*events, *failed) {
	method, path, body := route(operation, params)
	res := b.send(ctx, method, path, body, "Accept", sse.MediaType)
	if res.StatusCode != http.StatusOK {
		return nil, fromREST(b.t, res.StatusCode, b.body(res))
	}
	require.Equal(b.t, sse.MediaType, res.Header.Get("Content-Type"))
	return serverSent(res, func(data []byte) ([]byte, error) { return data, nil }), nil
}

// serverSent reads a stream whose data lines unwrap to a StreamResponse.
func serverSent(res *http.Response, unwrap func([]byte) ([]byte, error)) *events {
	reader := sse.NewReader(res.Body, sse.DefaultMaxEvent)
	stream := &events{close: func() { res.Body.Close() }}
	stream.next = func() (*a2apb.StreamResponse, string, error) {
		e, err := reader.Next()
		if err != nil {
			return nil, "", err
		}
		stream.name = e.Name
		data, err := unwrap(e.Data)
		if err != nil {
			return nil, "", err
		}
		if e.Name == "error" {
			return nil, "", errors.New(string(data))
		}
		r := &a2apb.StreamResponse{}
		return r, e.ID, protojson.Unmarshal(data, r)
	}
	return stream
}

type overJSONRPC struct{}

func envelope(operation, params string) string {
	return `{"jsonrpc":"2.0","id":"r1","method":"` + operation + `","params":` + params + `}`
}

type rpcResponse struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result"`
	Error   *wireError      `json:"error"`
}

func (overJSONRPC) call(ctx context.Context, b *bench, operation, params string) outcome {
	res := b.send(ctx, http.MethodPost, "/rpc", envelope(operation, params))
	r := fromJSONRPC(b.t, res, b.body(res))
	if r.Error != nil {
		f := r.Error.failed()
		f.jsonrpc = r.Error.Code
		return outcome{failed: f, header: res.Header}
	}
	return outcome{result: string(r.Result), header: res.Header}
}

func fromJSONRPC(t *testing.T, res *http.Response, text string) rpcResponse {
	t.Helper()
	require.Equal(t, http.StatusOK, res.StatusCode, text)
	require.Equal(t, "application/json", res.Header.Get("Content-Type"))
	var r rpcResponse
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	require.NoError(t, dec.Decode(&r), text)
	require.Equal(t, "2.0", r.JSONRPC)
	require.Equal(t, `"r1"`, string(r.ID))
	return r
}

func (overJSONRPC) stream(ctx context.Context, b *bench, operation, params string) (*events, *failed) {
	res := b.send(ctx, http.MethodPost, "/rpc", envelope(operation, params))
	if res.Header.Get("Content-Type") != sse.MediaType {
		r := fromJSONRPC(b.t, res, b.body(res))
		require.NotNil(b.t, r.Error)
		f := r.Error.failed()
		f.jsonrpc = r.Error.Code
		return nil, f
	}
	return serverSent(res, func(data []byte) ([]byte, error) {
		var r rpcResponse
		if err := json.Unmarshal(data, &r); err != nil {
			return nil, err
		}
		if string(r.ID) != `"r1"` {
			return nil, errors.New("another id: " + string(r.ID))
		}
		if r.Error != nil {
			return nil, errors.New(r.Error.Message)
		}
		return r.Result, nil
	}), nil
}
