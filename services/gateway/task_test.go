package gateway_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
)

func TestCancel(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		id := over.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t).GetId()
		first := over.call(t.Context(), b, "CancelTask", `{"id":"`+id+`","metadata":{"why":"late"}}`).task(t)
		require.Equal(t, task.Canceled, first.GetStatus().GetState())
		again := over.call(t.Context(), b, "CancelTask", `{"id":"`+id+`"}`).task(t)
		require.Equal(t, first.String(), again.String(), "canceled again is the same")
		require.Equal(t, a2aerr.ReasonTaskNotFound, over.call(t.Context(), b, "CancelTask", `{"id":"nope"}`).failed.reason)

		scripted(b.store)
		done := over.call(t.Context(), b, "SendMessage", say("m2", "hi")).task(t).GetId()
		refused := over.call(t.Context(), b, "CancelTask", `{"id":"`+done+`"}`)
		require.Equal(t, a2aerr.ReasonTaskNotCancelable, refused.failed.reason)
		switch over.(type) {
		case overGRPC:
			require.Equal(t, "FailedPrecondition", refused.failed.code)
		case overREST:
			require.Equal(t, "FAILED_PRECONDITION", refused.failed.code)
			require.Equal(t, http.StatusBadRequest, refused.failed.http)
		case overJSONRPC:
			require.Equal(t, -32002, refused.failed.jsonrpc)
		}
	})
}

func TestGetTaskWithHistoryLength(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		id := over.call(t.Context(), b, "SendMessage", atOnce(say("m1", "wait"))).task(t).GetId()
		for i := range 4 {
			over.call(t.Context(), b, "SendMessage", atOnce(say(fmt.Sprint("n", i), "wait", `"taskId":"`+id+`"`))).task(t)
		}
		for params, want := range map[string]int{"": 5, `,"historyLength":0`: 0, `,"historyLength":2`: 2, `,"historyLength":99`: 5} {
			got := over.call(t.Context(), b, "GetTask", `{"id":"`+id+`"`+params+`}`)
			require.Len(t, got.task(t).GetHistory(), want, params)
			require.Equal(t, want > 0, strings.Contains(got.result, `"history"`))
		}
		last := over.call(t.Context(), b, "GetTask", `{"id":"`+id+`","historyLength":2}`).task(t).GetHistory()
		require.Equal(t, "n2", last[0].GetMessageId(), "the newest, in order")
		require.Equal(t, "n3", last[1].GetMessageId())
	})
}

func TestListTasks(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		scripted(b.store)
		list := func(params string) *a2apb.ListTasksResponse {
			r := &a2apb.ListTasksResponse{}
			over.call(t.Context(), b, "ListTasks", params).message(t, r)
			return r
		}
		require.EqualValues(t, 50, list(`{}`).GetPageSize())
		for i := range 7 {
			over.call(t.Context(), b, "SendMessage", say(fmt.Sprint("m", i), "hi", `"contextId":"c1"`)).task(t)
		}
		waiting := over.call(t.Context(), b, "SendMessage", atOnce(say("w", "wait"))).task(t)

		seen := map[string]bool{}
		token := ""
		for pages := 1; ; pages++ {
			page := list(fmt.Sprintf(`{"contextId":"c1","pageSize":3,"pageToken":%q}`, token))
			require.EqualValues(t, 7, page.GetTotalSize())
			require.EqualValues(t, 3, page.GetPageSize())
			for _, got := range page.GetTasks() {
				require.False(t, seen[got.GetId()])
				seen[got.GetId()] = true
				require.Empty(t, got.GetArtifacts())
			}
			if token = page.GetNextPageToken(); token == "" {
				require.Equal(t, 3, pages)
				break
			}
		}
		require.Len(t, seen, 7)
		require.Equal(t, waiting.GetId(), list(`{"status":"TASK_STATE_SUBMITTED"}`).GetTasks()[0].GetId())
		require.Empty(t, list(`{"contextId":"unknown"}`).GetTasks())
		require.NotEmpty(t, list(`{"contextId":"c1","pageSize":1,"includeArtifacts":true}`).GetTasks()[0].GetArtifacts())
		require.Empty(t, list(`{"historyLength":0}`).GetTasks()[0].GetHistory())
		require.Empty(t, list(`{"statusTimestampAfter":"2999-01-01T00:00:00Z"}`).GetTasks())
		require.Len(t, list(`{"statusTimestampAfter":"2020-01-01T00:00:00Z"}`).GetTasks(), 8)

		first := list(`{"pageSize":1}`)
		mixed := over.call(t.Context(), b, "ListTasks", fmt.Sprintf(`{"contextId":"c1","pageToken":%q}`, first.GetNextPageToken()))
		require.Equal(t, "pageToken", mixed.failed.field, "a token belongs to its filters")
	})
}

func TestListsAlwaysHaveTheirMembers(t *testing.T) {
	t.Parallel()
	onJSONBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		require.Equal(t, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`, over.call(t.Context(), b, "ListTasks", `{}`).result)
		scripted(b.store)
		over.call(t.Context(), b, "SendMessage", say("m", "hi")).task(t)
		got := over.call(t.Context(), b, "ListTasks", `{}`).result
		require.NotContains(t, got, "artifacts")
		require.NotContains(t, got, "null")
	})
}

func TestOnGRPCAPageSizeOfZeroIsUnset(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var page a2apb.ListTasksResponse
	overGRPC{}.call(t.Context(), b, "ListTasks", `{"pageSize":0}`).message(t, &page)
	require.EqualValues(t, 50, page.GetPageSize())
}

func TestPushNotificationsAreRefusedEverywhere(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		for operation, params := range map[string]string{
			"CreateTaskPushNotificationConfig": `{"taskId":"nope","url":"https://hook.test/h"}`,
			"GetTaskPushNotificationConfig":    `{"taskId":"nope","id":"c:1"}`,
			"ListTaskPushNotificationConfigs":  `{"taskId":"nope"}`,
			"DeleteTaskPushNotificationConfig": `{"taskId":"nope","id":"c"}`,
			"SendMessage":                      `{"message":{},"configuration":{"taskPushNotificationConfig":{"url":"https://hook.test/h"}}}`,
		} {
			got := over.call(t.Context(), b, operation, params)
			require.NotNil(t, got.failed, operation)
			require.Equal(t, a2aerr.ReasonPushNotificationNotSupported, got.failed.reason, operation)
		}
		require.Zero(t, b.store.writes)
	})
}

func TestThereIsNoExtendedCard(t *testing.T) {
	t.Parallel()
	onAllBindings(t, func(t *testing.T, over binding) {
		b := newBench(t)
		require.Equal(t, a2aerr.ReasonUnsupportedOperation, over.call(t.Context(), b, "GetExtendedAgentCard", `{}`).failed.reason)
	})
	b := newBench(t)
	body := `{"jsonrpc":"2.0","id":"r1","method":"GetExtendedAgentCard"}`
	require.Contains(t, b.body(b.send(t.Context(), http.MethodPost, "/rpc", body)), `"code":-32004`, "params may be absent")
}
