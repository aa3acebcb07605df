package client_test

import (
	"net/http"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/errandhq/errand/pkg/client"
)

func TestTenantIsEchoed(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{Tenant: "acme.orders"}, func(c *call) {
			if c.binding == client.HTTPJSON {
				require.Contains(t, []string{"/base/acme.orders/message:send", "/base/acme.orders/tasks/t"}, c.request.URL.Path)
			}
			if c.binding == client.JSONRPC || c.operation == "SendMessage" {
				require.Equal(t, "acme.orders", c.params["tenant"])
			}
			if c.operation == "GetTask" {
				c.result(taskJSON("WORKING"))
				return
			}
			c.result(taskEvent("COMPLETED"))
		})
		request := send("go")
		_, err := c.Send(t.Context(), request)
		require.NoError(t, err)
		require.Empty(t, request.GetTenant())
		_, err = c.Get(t.Context(), &a2apb.GetTaskRequest{Id: "t"})
		require.NoError(t, err)
	})
}

func TestServiceParametersAndHeadersAreSent(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		opts := client.Options{
			Header:     http.Header{"authorization": {"Bearer x"}},
			Extensions: []string{"https://x.test/a", "https://x.test/b"},
		}
		c := script(t, binding, opts, func(c *call) {
			require.Equal(t, "1.0", c.request.Header.Get("A2A-Version"))
			require.Equal(t, "https://x.test/a,https://x.test/b", c.request.Header.Get("A2A-Extensions"))
			require.Equal(t, "Bearer x", c.request.Header.Get("Authorization"))
			c.result(taskEvent("COMPLETED"))
		})
		_, err := c.Send(t.Context(), send("go"))
		require.NoError(t, err)
	})
}

func TestIDsAreOnePathSegment(t *testing.T) {
	t.Parallel()
	c := script(t, client.HTTPJSON, client.Options{}, func(c *call) {
		require.Equal(t, "/base/tasks/a%2Fb%3Acancel%20%3F:cancel", c.request.URL.EscapedPath())
		c.result(taskJSON("CANCELED"))
	})
	_, err := c.Cancel(t.Context(), &a2apb.CancelTaskRequest{Id: "a/b:cancel ?"})
	require.NoError(t, err)
}

func TestListFiltersAreTheQuery(t *testing.T) {
	t.Parallel()
	onBothHTTPBindings(t, func(t *testing.T, binding string) {
		c := script(t, binding, client.Options{}, func(c *call) {
			require.Equal(t, "c1", c.params["contextId"])
			require.Equal(t, "TASK_STATE_WORKING", c.params["status"])
			require.Equal(t, "2026-01-02T03:04:05Z", c.params["statusTimestampAfter"])
			c.result(`{"tasks":[],"nextPageToken":"","pageSize":7,"totalSize":0}`)
		})
		size := int32(7)
		page, err := c.ListPage(t.Context(), &a2apb.ListTasksRequest{
			ContextId: "c1", Status: a2apb.TaskState_TASK_STATE_WORKING, PageSize: &size,
			StatusTimestampAfter: timestamppb.New(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		})
		require.NoError(t, err)
		require.EqualValues(t, 7, page.GetPageSize())
	})
}

func TestPagesThatGoInCirclesAreAnError(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		c.result(`{"tasks":[` + taskJSON("WORKING") + `],"nextPageToken":"again","pageSize":1,"totalSize":9}`)
	})
	var failed error
	for _, err := range c.List(t.Context(), &a2apb.ListTasksRequest{}) {
		failed = err
	}
	require.ErrorIs(t, failed, client.ErrProtocol)
}

func TestAnswersThatAreNoA2A(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		status int
		body   string
		want   error
	}{
		{"a proxy that can't reach the agent", http.StatusBadGateway, "<html>", client.ErrUnavailable},
		{"a proxy that wants credentials", http.StatusUnauthorized, "", client.ErrUnauthenticated},
		{"a web page", http.StatusOK, "<html>", client.ErrProtocol},
		{"an empty body", http.StatusOK, "", client.ErrProtocol},
		{"an array", http.StatusOK, "[]", client.ErrProtocol},
		{"a string where a task should be", http.StatusOK, `{"task":"x","result":{"task":"x"}}`, client.ErrProtocol},
		{"neither task nor message", http.StatusOK, `{"result":{}}`, client.ErrProtocol},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			onBothHTTPBindings(t, func(t *testing.T, binding string) {
				opts := client.Options{Retry: client.Retry{Attempts: 1}}
				c := script(t, binding, opts, func(c *call) {
					c.WriteHeader(test.status)
					_, _ = c.Write([]byte(test.body))
				})
				_, err := c.Send(t.Context(), send("go"))
				require.ErrorIs(t, err, test.want)
			})
		})
	}
}

func TestErrorsWithoutDetailsAreTypedByCode(t *testing.T) {
	t.Parallel()
	c := script(t, client.JSONRPC, client.Options{}, func(c *call) {
		_, _ = c.Write([]byte(`{"jsonrpc":"2.0","id":"1","error":{"code":-32001,"message":"gone","data":"whatever"}}`))
	})
	_, err := c.Get(t.Context(), &a2apb.GetTaskRequest{Id: "t"})
	require.ErrorIs(t, err, client.ErrTaskNotFound)
	require.ErrorContains(t, err, "gone (TASK_NOT_FOUND)")
}

func TestResponseOverTheLimitIsAnError(t *testing.T) {
	t.Parallel()
	c := script(t, client.HTTPJSON, client.Options{MaxResponse: 100}, func(c *call) {
		c.result(taskJSON("COMPLETED", string(make([]byte, 1000))))
	})
	_, err := c.Get(t.Context(), &a2apb.GetTaskRequest{Id: "t"})
	require.ErrorIs(t, err, client.ErrProtocol)
}
