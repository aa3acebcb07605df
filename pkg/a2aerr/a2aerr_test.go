package a2aerr_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/a2aerr"
)

var update = flag.Bool("update", false, "rewrite golden files")

var all = map[string]struct {
	err     error
	reason  string
	code    codes.Code
	http    int
	jsonrpc int
}{
	"task_not_found":                  {a2aerr.TaskNotFound("t-42"), "TASK_NOT_FOUND", codes.NotFound, 404, -32001},
	"task_not_cancelable":             {a2aerr.TaskNotCancelable("t-42"), "TASK_NOT_CANCELABLE", codes.FailedPrecondition, 400, -32002},
	"push_notification_not_supported": {a2aerr.PushNotificationNotSupported(), "PUSH_NOTIFICATION_NOT_SUPPORTED", codes.FailedPrecondition, 400, -32003},
	"unsupported_operation":           {a2aerr.UnsupportedOperation("the task is finished"), "UNSUPPORTED_OPERATION", codes.FailedPrecondition, 400, -32004},
	"content_type_not_supported":      {a2aerr.ContentTypeNotSupported("message.parts[0]", "video/mp4", []string{"text/plain"}), "CONTENT_TYPE_NOT_SUPPORTED", codes.InvalidArgument, 400, -32005},
	"invalid_agent_response":          {a2aerr.InvalidAgentResponse("the agent's answer was illegal"), "INVALID_AGENT_RESPONSE", codes.Internal, 500, -32006},
	"extended_card_not_configured":    {a2aerr.ExtendedAgentCardNotConfigured(), "EXTENDED_AGENT_CARD_NOT_CONFIGURED", codes.FailedPrecondition, 400, -32007},
	"extension_support_required":      {a2aerr.ExtensionSupportRequired("https://x.test/ext/a"), "EXTENSION_SUPPORT_REQUIRED", codes.FailedPrecondition, 400, -32008},
	"version_not_supported":           {a2aerr.VersionNotSupported("99.0", "1.0"), "VERSION_NOT_SUPPORTED", codes.FailedPrecondition, 400, -32009},
	"version_missing":                 {a2aerr.VersionNotSupported("", "1.0"), "VERSION_NOT_SUPPORTED", codes.FailedPrecondition, 400, -32009},
	"parse_error":                     {a2aerr.ParseError("the body is not JSON"), "PARSE_ERROR", codes.InvalidArgument, 400, -32700},
	"invalid_request":                 {a2aerr.InvalidRequest(`jsonrpc must be "2.0"`), "INVALID_REQUEST", codes.InvalidArgument, 400, -32600},
	"method_not_found":                {a2aerr.MethodNotFound("tasks/get"), "METHOD_NOT_FOUND", codes.Unimplemented, 404, -32601},
	"method_not_allowed":              {a2aerr.MethodNotAllowed("PUT"), "METHOD_NOT_FOUND", codes.Unimplemented, 405, -32601},
	"media_type_not_supported":        {a2aerr.MediaTypeNotSupported("text/plain", "application/json"), "CONTENT_TYPE_NOT_SUPPORTED", codes.InvalidArgument, 415, -32005},
	"invalid":                         {a2aerr.Invalid("message.parts", "must not be empty"), "INVALID_PARAMS", codes.InvalidArgument, 400, -32602},
	"too_large":                       {a2aerr.TooLarge("body", "at most 8 MiB"), "TOO_LARGE", codes.ResourceExhausted, 413, -32602},
	"unauthenticated":                 {a2aerr.Unauthenticated("credentials are missing"), "UNAUTHENTICATED", codes.Unauthenticated, 401, -31401},
	"permission_denied":               {a2aerr.PermissionDenied("not for this subject"), "UNAUTHORIZED", codes.PermissionDenied, 403, -31403},
	"unavailable":                     {a2aerr.Unavailable("no executor is connected", 5*time.Second), "UNAVAILABLE", codes.Unavailable, 503, -32603},
	"exhausted":                       {a2aerr.Exhausted("the agent has too many tasks in its queue", 2*time.Second), "RESOURCE_EXHAUSTED", codes.ResourceExhausted, 429, -32603},
	"internal":                        {a2aerr.Internal("ab12"), "INTERNAL_ERROR", codes.Internal, 500, -32603},
}

func TestEachErrorHasTheCodesOfItsKind(t *testing.T) {
	t.Parallel()
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := a2aerr.From(want.err)
			require.Equal(t, want.reason, e.Reason)
			require.Equal(t, want.code, e.Code)
			require.Equal(t, want.http, e.HTTPStatus)
			require.Equal(t, want.jsonrpc, e.JSONRPCCode)
			info, ok := e.Details[0].(*errdetails.ErrorInfo)
			require.True(t, ok, "ErrorInfo stands first")
			require.Equal(t, a2aerr.Domain, info.GetDomain())
			require.Equal(t, want.reason, info.GetReason())
		})
	}
}

func TestBodiesAreGolden(t *testing.T) {
	t.Parallel()
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := a2aerr.From(want.err)
			rest, err := e.MarshalREST()
			require.NoError(t, err)
			rpc, err := e.MarshalJSONRPC()
			require.NoError(t, err)
			got := string(rest) + "\n" + string(rpc) + "\n"

			file := filepath.Join("testdata", name+".golden")
			if *update {
				require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
			}
			golden, err := os.ReadFile(file)
			require.NoError(t, err)
			require.Equal(t, string(golden), got)
		})
	}
}

func TestErrorsTravelThroughGRPCUnchanged(t *testing.T) {
	t.Parallel()
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := a2aerr.From(want.err)
			onTheWire := status.ErrorProto(sent.GRPCStatus().Proto())
			got := a2aerr.From(fmt.Errorf("accept message: %w", onTheWire))
			require.Equal(t, sent.Reason, got.Reason)
			require.Equal(t, sent.Message, got.Message, "no wrapper's text reaches the sender")
			require.Equal(t, sent.ID(), got.ID())
			require.Equal(t, sent.RetryAfter(), got.RetryAfter())
			require.Equal(t, sent.GRPCStatus().Proto().String(), got.GRPCStatus().Proto().String())
		})
	}
}

func TestWrappersDoNotChangeAnError(t *testing.T) {
	t.Parallel()
	got := a2aerr.From(fmt.Errorf("get task: %w", a2aerr.TaskNotFound("t-1")))
	require.Equal(t, "task not found", got.Message)
	require.Equal(t, codes.NotFound, got.Code)
}

func TestUnknownErrorsShowOnlyAnID(t *testing.T) {
	t.Parallel()
	cause := errors.New("dial tcp 10.0.0.7:5432: refused")
	for name, err := range map[string]error{
		"plain":          cause,
		"status":         status.Error(codes.Internal, cause.Error()),
		"status unknown": fmt.Errorf("list: %w", status.Error(codes.InvalidArgument, cause.Error())),
		"foreign domain": foreign(t, cause.Error()),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := a2aerr.From(err)
			require.Equal(t, http.StatusInternalServerError, e.HTTPStatus)
			require.NotEmpty(t, e.ID())
			require.Equal(t, "internal error "+e.ID(), e.Message)
			require.ErrorIs(t, e, err, "the log line has the cause")
			body, marshalErr := e.MarshalREST()
			require.NoError(t, marshalErr)
			require.NotContains(t, string(body), "10.0.0.7")
		})
	}
}

func foreign(t *testing.T, message string) error {
	s, err := status.New(codes.NotFound, message).WithDetails(
		&errdetails.ErrorInfo{Reason: "TASK_NOT_FOUND", Domain: "example.test"})
	require.NoError(t, err)
	return s.Err()
}

func TestContextAndConnectionErrorsHaveAKind(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err    error
		reason string
	}{
		"canceled":        {fmt.Errorf("wait: %w", context.Canceled), a2aerr.ReasonCanceled},
		"deadline":        {context.DeadlineExceeded, a2aerr.ReasonDeadlineExceeded},
		"status canceled": {status.Error(codes.Canceled, "x"), a2aerr.ReasonCanceled},
		"status deadline": {status.Error(codes.DeadlineExceeded, "x"), a2aerr.ReasonDeadlineExceeded},
		"unavailable":     {status.Error(codes.Unavailable, "dial tcp 10.0.0.7: refused"), a2aerr.ReasonUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := a2aerr.From(tc.err)
			require.Equal(t, tc.reason, e.Reason)
			require.NotContains(t, e.Message, "10.0.0.7")
			require.ErrorIs(t, e, tc.err)
		})
	}
	require.Nil(t, a2aerr.From(nil))
	require.Equal(t, 5*time.Second, a2aerr.From(all["unavailable"].err).RetryAfter())
}

func TestTheOlderProfileAnswersUnimplemented(t *testing.T) {
	t.Parallel()
	unimplemented := map[string]bool{
		a2aerr.ReasonVersionNotSupported: true, a2aerr.ReasonUnsupportedOperation: true,
		a2aerr.ReasonPushNotificationNotSupported: true,
	}
	for name, want := range all {
		e := a2aerr.From(want.err)
		code := want.code
		if unimplemented[want.reason] {
			code = codes.Unimplemented
		}
		require.Equal(t, code, e.StatusFor(a2aerr.Profile100).Code(), name)
		require.Equal(t, want.code, e.StatusFor(a2aerr.ProfileCurrent).Code(), name)
	}
}

func TestBytesThatAreNotUTF8DoNotCostTheError(t *testing.T) {
	t.Parallel()
	for _, err := range []error{a2aerr.TaskNotFound("a\xff"), a2aerr.MethodNotFound("/\xff"), a2aerr.Unavailable("\xff", 0), a2aerr.Invalid("\xff", "\xff")} {
		e := a2aerr.From(err)
		_, marshalErr := e.MarshalREST()
		require.NoError(t, marshalErr)
		require.Len(t, e.GRPCStatus().Details(), len(e.Details))
		require.Equal(t, e.Reason, a2aerr.From(status.ErrorProto(e.GRPCStatus().Proto())).Reason)
	}
}
