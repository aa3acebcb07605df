package conformance_test

import (
	"net/http"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/code"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// refusal is a row of the error table (A2A §5.4).
type refusal struct {
	reason  string
	jsonrpc int
	grpc    codes.Code
	http    int
}

var (
	taskNotFound         = refusal{"TASK_NOT_FOUND", -32001, codes.NotFound, 404}
	taskNotCancelable    = refusal{"TASK_NOT_CANCELABLE", -32002, codes.FailedPrecondition, 400}
	pushNotSupported     = refusal{"PUSH_NOTIFICATION_NOT_SUPPORTED", -32003, codes.FailedPrecondition, 400}
	unsupportedOperation = refusal{"UNSUPPORTED_OPERATION", -32004, codes.FailedPrecondition, 400}
	contentType          = refusal{"CONTENT_TYPE_NOT_SUPPORTED", -32005, codes.InvalidArgument, 400}
	extensionRequired    = refusal{"EXTENSION_SUPPORT_REQUIRED", -32008, codes.FailedPrecondition, 400}
	versionNotSupported  = refusal{"VERSION_NOT_SUPPORTED", -32009, codes.FailedPrecondition, 400}
	invalidParams        = refusal{"INVALID_PARAMS", -32602, codes.InvalidArgument, 400}
)

// refused calls and wants to be refused.
func (c *caller) refused(want refusal, op binding.Op, in proto.Message, options ...binding.Option) *binding.Error {
	c.t.Helper()
	answer := c.ask(op, in, options...)
	want.check(c.t, c.Binding, answer)
	return answer.Err
}

// refusedStream wants a streaming operation to be refused before its first event.
func (c *caller) refusedStream(want refusal, op binding.Op, in proto.Message, options ...binding.Option) *binding.Error {
	c.t.Helper()
	stream, answer, err := c.Open(within(c.t), op, in, options...)
	require.NoError(c.t, err)
	if stream != nil {
		stream.Close()
		require.Fail(c.t, "a stream was opened", "want %s", want.reason)
	}
	want.check(c.t, c.Binding, answer)
	return answer.Err
}

// check compares what is equal on all bindings, and the code of this one.
func (want refusal) check(t *testing.T, b binding.Binding, answer *binding.Answer) {
	t.Helper()
	got := answer.Err
	require.NotNil(t, got, "accepted with %v, want %s", answer.Result, want.reason)
	require.Equal(t, want.reason, got.Reason(), "message: %s", got.Message)
	require.NotEmpty(t, got.Message)
	requireNoInsides(t, got.Message)
	switch b.Name() {
	case "jsonrpc":
		require.Equal(t, want.jsonrpc, got.JSONRPC)
		require.Equal(t, http.StatusOK, answer.Status)
	case "rest":
		require.Equal(t, want.http, got.HTTP)
		require.Equal(t, code.Code_name[int32(want.grpc)], got.Name)
	case "grpc":
		require.Equal(t, want.grpc.String(), got.GRPC.String())
	}
	for key := range got.Info().GetMetadata() {
		require.NotContains(t, key, "_", "keys of ErrorInfo are camelCase words")
	}
}

// requireNoInsides: senders never see what an error looks like inside.
func requireNoInsides(t *testing.T, text string) {
	t.Helper()
	for _, inside := range []string{"goroutine", ".go:", "panic", "SQL", "sqlite", "pgx", "SQLSTATE", "nats", "rpc error", "dial tcp"} {
		require.NotContains(t, strings.ToLower(text), strings.ToLower(inside))
	}
}

// invalid wants the member to be named.
func (c *caller) invalid(field string, op binding.Op, in proto.Message) {
	c.t.Helper()
	got := c.refused(invalidParams, op, in)
	require.Equal(c.t, []string{field}, got.Fields(), got.Message)
}

// finished is a task of the probe agent in a terminal state.
func (c *caller) finished(end a2apb.TaskState) *a2apb.Task {
	c.t.Helper()
	probe := c.to(probeAgent)
	if end == canceled {
		hold := newHold(c.t)
		sent := probe.send(say(hold.text, immediately))
		return probe.cancel(sent.GetId())
	}
	got := probe.send(say(script(c.t, settleAs(end))))
	require.Equal(c.t, end, state(got))
	return got
}
