package gateway_test

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// sends are refused on every binding, naming the field.
var badSends = []struct{ name, params, field string }{
	{"no message", `{}`, "message"},
	{"no messageId", `{"message":{"role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.messageId"},
	{"blank messageId", `{"message":{"messageId":"  ","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.messageId"},
	{"no role", `{"message":{"messageId":"m","parts":[{"text":"x"}]}}`, "message.role"},
	{"agent's role", `{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"x"}]}}`, "message.role"},
	{"no parts", `{"message":{"messageId":"m","role":"ROLE_USER"}}`, "message.parts"},
	{"empty parts", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[]}}`, "message.parts"},
	{"empty part", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"},{}]}}`, "message.parts[1]"},
	{"empty URL", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"url":""}]}}`, "message.parts[0].url"},
	{"NUL in messageId", `{"message":{"messageId":"a\u0000b","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.messageId"},
	{"NUL in contextId", `{"message":{"messageId":"m","contextId":"a\u0000b","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.contextId"},
	{"line break in contextId", `{"message":{"messageId":"m","contextId":"a\r\nPUB x 0","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.contextId"},
	{"long contextId", `{"message":{"messageId":"m","contextId":"` + strings.Repeat("x", 257) + `","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.contextId"},
	{"very long messageId", `{"message":{"messageId":"` + strings.Repeat("x", 50_000) + `","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.messageId"},
	{"long taskId", `{"message":{"messageId":"m","taskId":"` + strings.Repeat("x", 300) + `","role":"ROLE_USER","parts":[{"text":"x"}]}}`, "message.taskId"},
	{"long reference", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"referenceTaskIds":["a","` + strings.Repeat("x", 300) + `"]}}`, "message.referenceTaskIds[1]"},
	{"many references", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}],"referenceTaskIds":["a"` + strings.Repeat(`,"a"`, 100) + `]}}`, "message.referenceTaskIds"},
	{"many output modes", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"acceptedOutputModes":["a"` + strings.Repeat(`,"a"`, 100) + `]}}`, "configuration.acceptedOutputModes"},
	{"negative historyLength", `{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{"historyLength":-5}}`, "configuration.historyLength"},
}

func TestBadSendsNameTheFieldAndStoreNothing(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		for _, tc := range badSends {
			got := over.call(t.Context(), b, "SendMessage", tc.params)
			require.NotNil(t, got.failed, tc.name)
			require.Equal(t, a2aerr.ReasonInvalidParams, got.failed.reason, tc.name)
			require.Equal(t, tc.field, got.failed.field, tc.name)
			_, refused := over.stream(t.Context(), b, "SendStreamingMessage", tc.params)
			require.NotNil(t, refused, tc.name)
			require.Equal(t, tc.field, refused.field, tc.name)
		}
		require.Zero(t, b.store.writes)
	})
}

func TestOddContentIsTakenAndComesBackExactly(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		message := `{"messageId":"m \"q\" ünï","contextId":"a.b * >","role":"ROLE_USER","parts":[` +
			`{"text":"a\u0000b \u0001 😀"},{"text":""},{"data":{"rev":3,"list":[null,true],"":{"k\u0000":1}}},{"raw":"AAEC","mediaType":"TEXT/Plain; charset=utf-8"}],` +
			`"metadata":{"k\u0000":"v\u0000"},"referenceTaskIds":["unknown"]}`
		got := over.call(t.Context(), b, "SendMessage", `{"message":`+message+`,"configuration":{"returnImmediately":true}}`).task(t)
		read := over.call(t.Context(), b, "GetTask", `{"id":"`+got.GetId()+`"}`).task(t)
		want, ok := request("SendMessage", `{"message":`+message+`}`).(*a2apb.SendMessageRequest)
		require.True(t, ok)
		want.Message.TaskId = got.GetId()
		require.Equal(t, want.GetMessage().String(), read.GetHistory()[0].String())
	})
}

func TestValuesWithoutAJSONFormAreRefusedOnGRPC(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	deep := structpb.NewNullValue()
	for range 21 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	for name, v := range map[string]*structpb.Value{
		"NaN": structpb.NewNumberValue(math.NaN()), "infinite": structpb.NewNumberValue(math.Inf(1)), "nothing": {}, "too deep": deep,
	} {
		r := request("SendMessage", hello).(*a2apb.SendMessageRequest)
		r.Message.Parts = append(r.Message.Parts, &a2apb.Part{Content: &a2apb.Part_Data{Data: structpb.NewStructValue(
			&structpb.Struct{Fields: map[string]*structpb.Value{"k": structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{v}})}},
		)}})
		err := b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/SendMessage", r, messages["SendMessage"][1])
		require.Equal(t, a2aerr.ReasonInvalidParams, fromGRPC(err).reason, name)
		require.Contains(t, fromGRPC(err).field, "message.parts[1].data.k[0]", name)
	}
	err := b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/ListTasks",
		&a2apb.ListTasksRequest{StatusTimestampAfter: &timestamppb.Timestamp{Seconds: math.MaxInt64}}, messages["ListTasks"][1])
	require.Equal(t, "statusTimestampAfter", fromGRPC(err).field)
	err = b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/ListTasks", &a2apb.ListTasksRequest{Status: 99}, messages["ListTasks"][1])
	require.Equal(t, "status", fromGRPC(err).field)
	require.Zero(t, b.store.writes)
}

func TestBadReadsNameTheField(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		for _, tc := range []struct{ operation, params, field string }{
			{"GetTask", `{"id":"t","historyLength":-1}`, "historyLength"},
			{"GetTask", `{"id":"` + strings.Repeat("x", 300) + `"}`, "id"},
			{"GetTask", `{"id":"a\u0001"}`, "id"},
			{"CancelTask", `{"id":"` + strings.Repeat("x", 300) + `"}`, "id"},
			{"ListTasks", `{"pageSize":101}`, "pageSize"},
			{"ListTasks", `{"pageSize":-1}`, "pageSize"},
			{"ListTasks", `{"historyLength":-1}`, "historyLength"},
			{"ListTasks", `{"pageToken":"abc"}`, "pageToken"},
			{"ListTasks", `{"pageToken":"\u0000"}`, "pageToken"},
			{"ListTasks", `{"pageToken":"` + strings.Repeat("A", 10_000) + `"}`, "pageToken"},
			{"ListTasks", `{"contextId":"a\u0000"}`, "contextId"},
		} {
			got := over.call(t.Context(), b, tc.operation, tc.params)
			require.NotNil(t, got.failed, "%s %s", tc.operation, tc.params)
			require.Equal(t, a2aerr.ReasonInvalidParams, got.failed.reason, tc.params)
			require.Equal(t, tc.field, got.failed.field, tc.params)
		}
		_, refused := over.stream(t.Context(), b, "SubscribeToTask", `{"id":"`+strings.Repeat("x", 300)+`"}`)
		require.Equal(t, "id", refused.field)
	})
}

func TestJSONListFiltersAreChecked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, tc := range []struct{ query, params, field string }{
		{"pageSize=0", `{"pageSize":0}`, "pageSize"},
		{"pageSize=1.5", `{"pageSize":1.5}`, "pageSize"},
		{"pageSize=2147483648", `{"pageSize":2147483648}`, "pageSize"},
		{"pageSize=", `{"pageSize":""}`, "pageSize"},
		{"historyLength=x", `{"historyLength":"x"}`, "historyLength"},
		{"status=done", `{"status":"done"}`, "status"},
		{"statusTimestampAfter=2025-13-01", `{"statusTimestampAfter":"2025-13-01"}`, "statusTimestampAfter"},
		{"statusTimestampAfter=0000-01-01T00:00:00Z", `{"statusTimestampAfter":"0000-01-01T00:00:00Z"}`, "statusTimestampAfter"},
		{"pageToken=%FF", `{"pageToken":"\ud800"}`, "pageToken"},
		{"lastUpdatedAfter=", `{"statusTimestampAfter":""}`, "statusTimestampAfter"},
		{"includeArtifacts=yes", `{"includeArtifacts":"yes"}`, "includeArtifacts"},
		{"pageSize=1&pageSize=2", `{"pageSize":1,"pageSize":2}`, "pageSize"},
	} {
		text := b.body(b.send(t.Context(), http.MethodGet, "/tasks?"+tc.query, ""))
		require.Contains(t, text, `"field":"`+tc.field+`"`, tc.query)
		got := overJSONRPC{}.call(t.Context(), b, "ListTasks", tc.params)
		require.NotNil(t, got.failed, tc.params)
		require.Equal(t, tc.field, got.failed.field, tc.params)
		require.Equal(t, -32602, got.failed.jsonrpc)
	}
	for _, query := range []string{
		"pageSize=5&unknown=1&tasks[0]=x", "page_size=5", "statusTimestampAfter=2025-01-01T00:00:00%2B02:00",
		"lastUpdatedAfter=2025-01-01T00:00:00Z", "status=TASK_STATE_WORKING", "historyLength=2&includeArtifacts=true", "A2A-Version=1.0",
	} {
		require.Equal(t, http.StatusOK, b.send(t.Context(), http.MethodGet, "/tasks?"+query, "").StatusCode, query)
	}
}

func TestBodiesOverTheLimitAreRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	large := strings.Replace(hello, `"hi"`, `"`+strings.Repeat("x", 150_000)+`"`, 1)
	for name, ctx := range map[string]context.Context{"known length": t.Context(), "chunked": chunked(t.Context())} {
		res := b.send(ctx, http.MethodPost, "/message:send", large)
		require.Equal(t, http.StatusRequestEntityTooLarge, res.StatusCode, name)
		require.Contains(t, b.body(res), `"status":"RESOURCE_EXHAUSTED"`, name)
		res = b.send(ctx, http.MethodPost, "/rpc", envelope("SendMessage", large))
		require.Equal(t, http.StatusOK, res.StatusCode, name)
		require.Contains(t, b.body(res), `"id":null,"error":{"code":-32602`, name)
	}
	err := b.grpc.Invoke(outgoing(t.Context()), "/lf.a2a.v1.A2AService/SendMessage", request("SendMessage", large), messages["SendMessage"][1])
	require.ErrorContains(t, err, "ResourceExhausted")
	require.Zero(t, b.store.writes)
}

func TestEventLimitAppliesToMessages(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t, withAgents(strings.Replace(defaultAgents, "limits: {", "limits: {event: 2048, ", 1)))
		got := over.call(t.Context(), b, "SendMessage", strings.Replace(hello, `"hi"`, `"`+strings.Repeat("x", 3000)+`"`, 1))
		require.Equal(t, a2aerr.ReasonTooLarge, got.failed.reason)
		require.Equal(t, "message", got.failed.field)
	})
}

func TestMediaTypesOfPartsAreChecked(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		part := func(mediaType string) string {
			return fmt.Sprintf(`{"message":{"messageId":"m-%s","role":"ROLE_USER","parts":[{"text":"x"},{"raw":"AAEC","mediaType":%q}]},"configuration":{"returnImmediately":true}}`, mediaType, mediaType)
		}
		got := over.call(t.Context(), b, "SendMessage", part("video/mp4"))
		require.Equal(t, a2aerr.ReasonContentTypeNotSupported, got.failed.reason)
		require.Equal(t, "message.parts[1]", got.failed.field)
		require.Equal(t, a2aerr.ReasonContentTypeNotSupported, over.call(t.Context(), b, "SendMessage", part("nonsense")).failed.reason)
		require.Zero(t, b.store.writes)
		require.Nil(t, over.call(t.Context(), b, "SendMessage", part("TEXT/Plain; charset=utf-8")).failed)
		require.Nil(t, over.call(t.Context(), b, "SendMessage", strings.Replace(part("video/mp4"), `{"message"`, `{"tenant":"self.repeat","message"`, 1)).failed,
			"an agent may switch the check off")
	})
}
