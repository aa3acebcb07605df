package conformance_test

import (
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// CORE-ERR-001, CORE-ERR-002, DM-SERIAL-004, DM-PART-001, DM-MSG-002, A2A §5.7:
// the member is named, and nothing is stored, queued or remembered.
func TestAMessageWithoutItsRequiredMembersIsRefused(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		here, id := "c-"+uuid.NewString(), uuid.NewString()
		for field, changes := range map[string][]detail{
			"message":           {func(in *a2apb.SendMessageRequest) { in.Message = nil }},
			"message.messageId": {as(""), as("  "), as("\t\n")},
			"message.role": {
				func(in *a2apb.SendMessageRequest) { in.Message.Role = a2apb.Role_ROLE_UNSPECIFIED },
				func(in *a2apb.SendMessageRequest) { in.Message.Role = a2apb.Role_ROLE_AGENT },
				func(in *a2apb.SendMessageRequest) { in.Message.Role = 17 },
			},
			"message.parts":               {func(in *a2apb.SendMessageRequest) { in.Message.Parts = nil }},
			"message.parts[0]":            {func(in *a2apb.SendMessageRequest) { in.Message.Parts[0].Content = nil }},
			"message.parts[1]":            {func(in *a2apb.SendMessageRequest) { in.Message.Parts = append(in.Message.Parts, &a2apb.Part{}) }},
			"configuration.historyLength": {withHistory(-1), withHistory(-5)},
		} {
			for _, change := range changes {
				c.invalid(field, binding.SendMessage, say("echo", as(id), inContext(here), change))
				refused := c.refusedStream(invalidParams, binding.SendStreamingMessage, say("echo", as(id), inContext(here), change))
				require.Equal(t, []string{field}, refused.Fields())
			}
		}
		require.Empty(t, c.list(&a2apb.ListTasksRequest{ContextId: here}).GetTasks())
		require.Equal(t, completed, state(c.send(say("other text", as(id), inContext(here)))), "nothing was remembered of the id")
	})
}

// DM-PART-001: exactly one content, of which an empty text is one.
func TestAPartHasExactlyOneContent(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		in := say(script(t, settleAs(completed)))
		in.Message.Parts = append(in.Message.Parts, textPart(""))
		got := c.send(in)
		require.Equal(t, completed, state(got))
		require.Len(t, got.GetHistory()[0].GetParts(), 2)
	})
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, b binding.JSON) {
		for _, part := range []string{`{}`, `{"text":"a","url":"https://x.test"}`, `{"metadata":{}}`, `{"text":null}`, `{"futureField":1}`} {
			answer, err := b.CallJSON(within(t), binding.SendMessage, message(`"parts":[`+part+`]`))
			require.NoError(t, err)
			invalidParams.check(t, b, answer)
		}
		_ = c
	})
}

// A2A §5.5, CORE-ERR-001: what has the wrong type is named too.
func TestAMemberOfTheWrongTypeIsNamed(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, _ *caller, b binding.JSON) {
		for params, field := range map[string]string{
			message(`"parts":"x"`):                                 "message.parts",
			message(`"parts":[{"text":5}]`):                        "message.parts[0].text",
			message(`"parts":[{"raw":"%%%"}]`):                     "message.parts[0].raw",
			message(`"parts":[{"text":"x"}],"role":"user"`):        "message.role",
			message(`"parts":[{"text":"x"}],"contextId":[]`):       "message.contextId",
			message(`"parts":[{"text":"x"}],"metadata":"x"`):       "message.metadata",
			message(`"parts":[{"text":"x"}],"metadata":[1]`):       "message.metadata",
			message(`"parts":[{"text":"x"}],"referenceTaskIds":1`): "message.referenceTaskIds",
			`{"message":5}`: "message",
			`{"message":` + inner(`"parts":[{"text":"x"}]`) + `,"configuration":{"historyLength":"x"}}`:         "configuration.historyLength",
			`{"message":` + inner(`"parts":[{"text":"x"}]`) + `,"configuration":{"historyLength":1.5}}`:         "configuration.historyLength",
			`{"message":` + inner(`"parts":[{"text":"x"}]`) + `,"configuration":{"historyLength":2147483648}}`:  "configuration.historyLength",
			`{"message":` + inner(`"parts":[{"text":"x"}]`) + `,"configuration":{"historyLength":-5}}`:          "configuration.historyLength",
			`{"message":` + inner(`"parts":[{"text":"x"}]`) + `,"configuration":{"returnImmediately":"maybe"}}`: "configuration.returnImmediately",
			`{"message":` + inner(`"parts":[{"data":{"exp":1e400}}]`) + `}`:                                     "message.parts[0].data.exp",
			`{"message":` + inner(`"parts":[{"data":[1e400]}]`) + `}`:                                           "message.parts[0].data[0]",
			`{"message":` + inner(`"parts":[{"text":"x"}],"metadata":{"a":{"b":-1e999}}`) + `}`:                 "message.metadata.a.b",
		} {
			answer, err := b.CallJSON(within(t), binding.SendMessage, params)
			require.NoError(t, err, params)
			invalidParams.check(t, b, answer)
			require.Equal(t, []string{field}, answer.Err.Fields(), "%s\n%s", params, answer.Err.Message)
		}
	})
}

// message is a send whose message has a fresh id and these members.
func message(members string) string { return `{"message":` + inner(members) + `}` }

func inner(members string) string {
	return `{"messageId":"` + uuid.NewString() + `","role":"ROLE_USER",` + members + `}`
}

// A2A §3.1.4.
func TestListFiltersAreChecked(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(_ *testing.T, c *caller) {
		size := func(n int32) *a2apb.ListTasksRequest { return &a2apb.ListTasksRequest{PageSize: &n} }
		for _, n := range []int32{-1, 101, 2147483647} {
			c.invalid("pageSize", binding.ListTasks, size(n))
		}
		if c.Name() != "grpc" {
			c.invalid("pageSize", binding.ListTasks, size(0))
		}
		negative := int32(-1)
		c.invalid("historyLength", binding.ListTasks, &a2apb.ListTasksRequest{HistoryLength: &negative})
		c.invalid("historyLength", binding.GetTask, &a2apb.GetTaskRequest{Id: "x", HistoryLength: &negative})
	})
	eachJSON(t, defaultAgent, func(t *testing.T, _ *caller, b binding.JSON) {
		for params, field := range map[string]string{
			`{"status":"NOPE"}`:                            "status",
			`{"statusTimestampAfter":"2025-13-01"}`:        "statusTimestampAfter",
			`{"statusTimestampAfter":"now"}`:               "statusTimestampAfter",
			`{"statusTimestampAfter":"2025-01-01"}`:        "statusTimestampAfter",
			`{"statusTimestampAfter":"2025-01-01 00:00Z"}`: "statusTimestampAfter",
			`{"pageSize":"x"}`:                             "pageSize",
			`{"historyLength":1.5}`:                        "historyLength",
			`{"historyLength":2147483648}`:                 "historyLength",
		} {
			answer, err := b.CallJSON(within(t), binding.ListTasks, params)
			require.NoError(t, err, params)
			invalidParams.check(t, b, answer)
			require.Equal(t, []string{field}, answer.Err.Fields(), params)
		}
	})
	each(t, defaultAgent, func(_ *testing.T, c *caller) {
		if c.Name() == "grpc" {
			c.invalid("statusTimestampAfter", binding.ListTasks,
				&a2apb.ListTasksRequest{StatusTimestampAfter: &timestamppb.Timestamp{Seconds: -1 << 60}})
		}
	})
}

// Ids that senders choose have a documented maximum, by which none is cut.
func TestOverlongIDsAreRefused(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		dice := random(t)
		long := func(n int) string {
			text := make([]byte, n)
			for i := range text {
				text[i] = "abcdefghijklmnopqrstuvwxyz0123456789"[dice.IntN(36)]
			}
			return string(text)
		}
		fits := long(256)
		got := c.send(say("echo", inContext(fits), as(long(256))))
		require.Equal(t, completed, state(got))
		require.Equal(t, fits, got.GetContextId())
		require.Len(t, c.list(&a2apb.ListTasksRequest{ContextId: fits}).GetTasks(), 1)
		for _, n := range []int{257, 2600, 3000, 100_000} {
			c.invalid("message.contextId", binding.SendMessage, say("echo", inContext(long(n))))
			c.invalid("message.messageId", binding.SendMessage, say("echo", as(long(n))))
		}
		for _, field := range []string{"message.taskId", "id"} {
			if field == "id" {
				answer := c.ask(binding.GetTask, &a2apb.GetTaskRequest{Id: long(3000)})
				require.Contains(t, []string{"TASK_NOT_FOUND", "INVALID_PARAMS"}, answer.Err.Reason())
				continue
			}
			answer := c.ask(binding.SendMessage, say("echo", toTask(long(3000))))
			require.Contains(t, []string{"TASK_NOT_FOUND", "INVALID_PARAMS"}, answer.Err.Reason())
		}
	})
}

// Bodies above the limit are refused as such, on every binding; what is below
// arrives whole, above the 1 MiB of message brokers too.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	each(t, probeAgent, func(t *testing.T, c *caller) {
		raw := func(n int) *a2apb.SendMessageRequest {
			in := say(script(t, settleAs(completed)))
			in.Message.Parts = append(in.Message.Parts, &a2apb.Part{Content: &a2apb.Part_Raw{Raw: make([]byte, n)}, MediaType: "application/octet-stream"})
			return in
		}
		for _, n := range []int{900_000, 1_100_000} {
			got := c.send(raw(n))
			require.Equal(t, completed, state(got))
			require.Len(t, got.GetHistory()[0].GetParts()[1].GetRaw(), n)
		}
		answer := c.ask(binding.SendMessage, raw(6_000_000))
		require.NotNil(t, answer.Err)
		switch c.Name() {
		case "jsonrpc":
			require.Equal(t, -32602, answer.Err.JSONRPC)
		case "rest":
			require.Equal(t, 413, answer.Err.HTTP)
		case "grpc":
			require.Equal(t, "ResourceExhausted", answer.Err.GRPC.String())
		}
	})
}
