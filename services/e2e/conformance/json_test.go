package conformance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
)

// DM-SERIAL-005, A2A §5.7: unknown members are ignored at every level, among
// them those of older versions: without returnImmediately a send blocks.
func TestUnknownMembersAreIgnored(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, _ *caller, b binding.JSON) {
		got := sendJSON(t, b, `{"message":{"messageId":"`+uuid.NewString()+`","role":"ROLE_USER","kind":"message","futureList":[{"a":null}],
			"parts":[{"text":"sleep 0.3","kind":"text","futureField":{"a":[1]}}]},"configuration":{"blocking":false,"newThing":1},"x":true}`)
		require.Equal(t, completed, state(got))
	})
}

// A2A §5.5, DM-SERIAL-001: names of the proto and numbers in quotes are taken.
func TestProtoNamesAndQuotedNumbersAreTaken(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, b binding.JSON) {
		here := "c-" + uuid.NewString()
		got := sendJSON(t, b, `{"message":{"message_id":"`+uuid.NewString()+`","context_id":"`+here+`","role":1,"parts":[{"text":"echo","media_type":"text/plain"}],
			"task_id":null,"metadata":null,"extensions":null},"configuration":{"history_length":"0","accepted_output_modes":[],"return_immediately":false}}`)
		require.Equal(t, completed, state(got))
		require.Equal(t, here, got.GetContextId())
		require.Empty(t, got.GetHistory())
		if c.Name() == "jsonrpc" {
			answer, err := b.CallJSON(within(t), binding.ListTasks, `{"context_id":"`+here+`","page_size":"1","include_artifacts":true,"history_length":0}`)
			require.NoError(t, err)
			require.Nil(t, answer.Err)
			require.Len(t, answer.Result.(*a2apb.ListTasksResponse).GetTasks()[0].GetArtifacts(), 1)
		}
	})
}

func sendJSON(t *testing.T, b binding.JSON, params string) *a2apb.Task {
	t.Helper()
	answer, err := b.CallJSON(within(t), binding.SendMessage, params)
	require.NoError(t, err)
	require.Nil(t, answer.Err)
	return answer.Result.(*a2apb.SendMessageResponse).GetTask()
}

// DM-SERIAL-002, DM-SERIAL-003, DM-TASK-002, A2A §5.6.1: enums by name, times in
// UTC to the millisecond. (lowerCamelCase and null are checked on each answer.)
func TestEnumsAndTimesHaveTheirOneForm(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		answer := c.ask(binding.SendMessage, say("ask"))
		var got struct {
			Task struct {
				Status struct {
					State, Timestamp string
					Message          struct{ Role string }
				}
				History []struct{ Role string }
			}
		}
		require.NoError(t, json.Unmarshal(answer.JSON, &got))
		require.Equal(t, "TASK_STATE_INPUT_REQUIRED", got.Task.Status.State)
		require.Equal(t, "ROLE_AGENT", got.Task.Status.Message.Role)
		require.Equal(t, "ROLE_USER", got.Task.History[0].Role)
		require.Regexp(t, `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z$`, got.Task.Status.Timestamp)
	})
}

// Required lists are there when empty; optional ones are left out, as are
// artifacts and history that were not asked for (A2A §3.1.4, §5.7).
func TestEmptyListsAreArraysOrAbsent(t *testing.T) {
	t.Parallel()
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, _ binding.JSON) {
		nothing := c.ask(binding.ListTasks, &a2apb.ListTasksRequest{ContextId: uuid.NewString()})
		require.JSONEq(t, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`, string(nothing.JSON))

		none, done := int32(0), c.send(say("echo"))
		get := c.ask(binding.GetTask, &a2apb.GetTaskRequest{Id: done.GetId(), HistoryLength: &none})
		require.NotContains(t, string(get.JSON), `"history"`)
		list := c.ask(binding.ListTasks, &a2apb.ListTasksRequest{ContextId: done.GetContextId(), HistoryLength: &none})
		require.NotContains(t, string(list.JSON), `"artifacts"`)
		require.NotContains(t, string(list.JSON), `"history"`)

		rejected := c.to(tckAgent).ask(binding.SendMessage, say("x", as("tck-reject-task-"+uuid.NewString())))
		require.NotContains(t, string(rejected.JSON), `"artifacts"`)
		require.NotContains(t, string(rejected.JSON), `"metadata"`)
	})
}

// A2A §4.1.6: whole numbers stay whole on every path.
func TestNumbersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	const data = `{"rev":3,"neg":-0,"big":9007199254740992,"frac":0.1,"exp":1e21,"small":1e-7,"list":[1,[2,{"a":null}]],"yes":true,"text":"3"}`
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, b binding.JSON) {
		sent := sendJSON(t, b, message(`"parts":[{"text":"ask"},{"data":`+data+`}],"metadata":`+data))
		requireData := func(raw []byte) {
			t.Helper()
			require.NotContains(t, string(raw), "3.0")
			require.Contains(t, compact(t, raw), `"rev":3,`)
			require.Contains(t, compact(t, raw), `"big":9007199254740992,`)
			var task struct {
				History []struct {
					Parts    []struct{ Data json.RawMessage }
					Metadata json.RawMessage
				}
			}
			require.NoError(t, json.Unmarshal(raw, &task))
			require.JSONEq(t, data, string(task.History[0].Parts[1].Data))
			require.JSONEq(t, data, string(task.History[0].Metadata))
		}
		requireData(c.ask(binding.GetTask, &a2apb.GetTaskRequest{Id: sent.GetId()}).JSON)
		for _, other := range callers(t, c.cluster, c.agent) {
			other.requireEqual(sent, other.get(sent.GetId()))
		}
		watch := c.subscribe(sent.GetId())
		var first struct{ Task json.RawMessage }
		require.NoError(t, json.Unmarshal(watch.event().JSON, &first))
		watch.Close()
		requireData(first.Task)

		// Above 2^53 digits are lost, as documented, and nothing fails.
		big := sendJSON(t, b, message(`"parts":[{"text":"echo"},{"data":{"big":9007199254740993,"long":123456789012345678901234567890}}]`))
		require.Equal(t, completed, state(big))
	})
}

// compact sorts members and drops space.
func compact(t *testing.T, raw []byte) string {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(raw)))
	decoder.UseNumber()
	var v any
	require.NoError(t, decoder.Decode(&v))
	sorted, err := json.Marshal(v)
	require.NoError(t, err)
	return strings.ReplaceAll(string(sorted), "}", ",}")
}

// What never ends to parse in careless parsers is refused at once, and what is
// accepted can be read again.
func TestHostileJSONIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	deep := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	objects := func(n int) string { return strings.Repeat(`{"a":`, n) + "1" + strings.Repeat("}", n) }
	var keys strings.Builder
	for i := range 150_000 {
		fmt.Fprintf(&keys, `"%x":0,`, i)
	}
	eachJSON(t, defaultAgent, func(t *testing.T, c *caller, b binding.JSON) {
		for _, members := range []string{
			`"parts":[{"text":"echo"}],"unknown":` + deep(100_000),
			`"parts":[{"text":"echo","unknown":` + objects(20_000) + `}]`,
			`"parts":[{"data":` + objects(20_000) + `}]`,
			`"parts":[{"data":` + deep(20_000) + `}]`,
			`"parts":[{"text":"echo"}],"metadata":{` + keys.String() + `"z":0}`,
			`"parts":[` + strings.Repeat(`{"text":"x"},`, 5000) + `{"text":"x"}]`,
		} {
			answer, err := b.CallJSON(within(t), binding.SendMessage, message(members))
			require.NoError(t, err)
			require.NotNil(t, answer.Err)
			require.Contains(t, []string{"INVALID_PARAMS", "PARSE_ERROR", "TOO_LARGE"}, answer.Err.Reason())
		}
		nested := sendJSON(t, b, message(`"parts":[{"text":"echo"},{"data":`+objects(50)+`}]`))
		require.Equal(t, completed, state(nested))
		c.requireEqual(nested, c.get(nested.GetId()))
	})
}
