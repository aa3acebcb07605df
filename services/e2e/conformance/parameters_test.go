package conformance_test

import (
	"net/http"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// VER-SERVER-001, VER-SERVER-002, VER-SERVER-003, VER-CLIENT-001,
// VER-CLIENT-002, GRPC-META-001, HTTP_JSON-SVC-002, JSONRPC-SVC-002, A2A §3.6.
func TestOnlyVersion1IsServed(t *testing.T) {
	t.Parallel()
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		sent := c.send(say("echo"))
		in := &a2apb.GetTaskRequest{Id: sent.GetId()}
		for _, good := range []string{"1.0", "1.0.7", "1"} {
			answer := c.ask(binding.GetTask, in, binding.With("A2A-Version", good))
			require.Nil(t, answer.Err, "A2A-Version: %s", good)
		}
		for _, bad := range []string{"99.0", "abc", "0.3", "0.3.0", "1.1", "2", "1.", "-1.0", "1.0-beta", ""} {
			version := binding.With("A2A-Version", bad)
			c.refused(versionNotSupported, binding.GetTask, in, version)
			c.refused(versionNotSupported, binding.SendMessage, say("echo"), version)
			c.refusedStream(versionNotSupported, binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: sent.GetId()}, version)
		}
		c.refused(versionNotSupported, binding.GetTask, in, binding.With("A2A-Version"))
	})
}

// A2A §3.6.1: the version may stand in the query; the header wins.
func TestTheVersionMayStandInTheQuery(t *testing.T) {
	t.Parallel()
	eachEngine(t, func(t *testing.T, cluster *harness.Cluster) {
		none := map[string]string{"A2A-Version": ""}
		for _, query := range []string{"A2A-Version=1.0", "a2a-version=1.0", "x=1&A2A-Version=1.0.3"} {
			got := exchange{http.MethodGet, "/tasks?pageSize=1&" + query, "", none}.do(t, cluster)
			require.Equal(t, http.StatusOK, got.Status, "%s: %s", query, got.Body)
			rpc := exchange{http.MethodPost, "/rpc?" + query, rpcSend("1", "echo"), none}.do(t, cluster)
			require.Nil(t, parseRPC(t, rpc).Error, query)
		}
		bad := exchange{http.MethodGet, "/tasks?A2A-Version=99.0", "", none}.do(t, cluster)
		refusedREST(t, bad, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")
		header := exchange{method: http.MethodGet, path: "/tasks?pageSize=1&A2A-Version=99.0"}.do(t, cluster)
		require.Equal(t, http.StatusOK, header.Status)
	})
}

const (
	wanted    = "https://x.test/ext/a"
	offered   = "https://x.test/ext/c"
	elsewhere = "https://x.test/ext/b"
)

// CORE-CAP-004, A2A §3.3.4: on every operation, before a task is made.
func TestARequiredExtensionMustBeAskedFor(t *testing.T) {
	t.Parallel()
	each(t, pickyAgent, func(t *testing.T, c *caller) {
		here := "c-" + uuid.NewString()
		for _, missing := range []binding.Option{
			binding.With("A2A-Extensions"), binding.With("A2A-Extensions", ""), binding.With("A2A-Extensions", elsewhere),
			binding.With("A2A-Extensions", wanted+"/v2"), binding.With("A2A-Extensions", "HTTPS://X.TEST/EXT/A"),
		} {
			c.refused(extensionRequired, binding.SendMessage, say("echo", inContext(here)), missing)
			c.refusedStream(extensionRequired, binding.SendStreamingMessage, say("echo", inContext(here)), missing)
			c.refused(extensionRequired, binding.GetTask, &a2apb.GetTaskRequest{Id: "x"}, missing)
			c.refused(extensionRequired, binding.ListTasks, &a2apb.ListTasksRequest{}, missing)
		}
		answer := c.ask(binding.ListTasks, &a2apb.ListTasksRequest{ContextId: here}, binding.With("A2A-Extensions", wanted))
		require.Nil(t, answer.Err)
		require.Empty(t, answer.Result.(*a2apb.ListTasksResponse).GetTasks())
	})
}

// A2A §3.6, §9.2: a list with spaces, in several lines; unknown ones are
// ignored, and the answer names what is active.
func TestExtensionsAreAListOfURIs(t *testing.T) {
	t.Parallel()
	each(t, pickyAgent, func(t *testing.T, c *caller) {
		for _, tc := range []struct {
			values []string
			active []string
		}{
			{[]string{wanted}, []string{wanted}},
			{[]string{" " + elsewhere + " , " + wanted}, []string{wanted}},
			{[]string{elsewhere, wanted}, []string{wanted}},
			{[]string{wanted + "," + offered}, []string{wanted, offered}},
			{[]string{offered + ",", "," + wanted + ",," + wanted}, []string{wanted, offered}},
		} {
			answer := c.ask(binding.SendMessage, say("echo"), binding.With("A2A-Extensions", tc.values...))
			require.Nil(t, answer.Err, "%q", tc.values)
			require.ElementsMatch(t, tc.active, listOf(answer.Header, "A2A-Extensions"), "%q", tc.values)
		}
	})
	each(t, defaultAgent, func(t *testing.T, c *caller) {
		answer := c.ask(binding.SendMessage, say("echo"), binding.With("A2A-Extensions", wanted+","+elsewhere))
		require.Nil(t, answer.Err)
		require.Empty(t, listOf(answer.Header, "A2A-Extensions"))
	})
}

// CORE-SEND-003, A2A §3.1.1, §5.4.
func TestPartsOfOtherMediaTypesAreRefused(t *testing.T) {
	t.Parallel()
	each(t, pickyAgent, func(t *testing.T, c *caller) {
		extension := binding.With("A2A-Extensions", wanted)
		here := "c-" + uuid.NewString()
		with := func(parts ...*a2apb.Part) *a2apb.SendMessageRequest {
			in := say("", inContext(here))
			in.Message.Parts = parts
			return in
		}
		video := &a2apb.Part{Content: &a2apb.Part_Raw{Raw: []byte{0, 1, 2}}, MediaType: "video/mp4"}
		for _, bad := range []*a2apb.SendMessageRequest{
			with(video), with(textPart("see"), video), with(&a2apb.Part{Content: &a2apb.Part_Text{Text: "x"}, MediaType: "text/html"}),
			with(&a2apb.Part{Content: &a2apb.Part_Url{Url: "https://x.test"}, MediaType: "image/*"}),
		} {
			c.refused(contentType, binding.SendMessage, bad, extension)
			c.refusedStream(contentType, binding.SendStreamingMessage, bad, extension)
		}
		list := c.ask(binding.ListTasks, &a2apb.ListTasksRequest{ContextId: here}, extension)
		require.Empty(t, list.Result.(*a2apb.ListTasksResponse).GetTasks())
		for _, good := range []*a2apb.Part{
			textPart("hi"), {Content: &a2apb.Part_Text{Text: "hi"}, MediaType: "text/plain"},
			{Content: &a2apb.Part_Text{Text: "hi"}, MediaType: "TEXT/Plain; charset=utf-8"},
		} {
			require.Equal(t, completed, state(c.send(with(good), extension)))
		}
	})
}
