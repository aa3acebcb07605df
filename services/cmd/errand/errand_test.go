package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/client/clienttest"
)

// result is what a command left behind.
type result struct {
	code     int
	out, err string
}

// errand runs a command line with nothing on standard input.
func errand(ctx context.Context, args ...string) result {
	return errandWith(ctx, "", args...)
}

func errandWith(ctx context.Context, stdin string, args ...string) result {
	var out, err bytes.Buffer
	code := runContext(ctx, args, newConsole(strings.NewReader(stdin), &out, &err))
	return result{code, out.String(), err.String()}
}

func onEachBinding(t *testing.T, test func(t *testing.T, agent *clienttest.Agent, at ...string)) {
	t.Helper()
	for binding := range bindings {
		if binding == "" {
			continue
		}
		t.Run(binding, func(t *testing.T) {
			t.Parallel()
			agent := clienttest.Start(t)
			test(t, agent, "--url", agent.URL, "--binding", binding)
		})
	}
}

func with(at []string, args ...string) []string { return append(args, at...) }

// lines decodes JSON output.
func lines(t *testing.T, out string) (objects []map[string]any) {
	t.Helper()
	for line := range strings.Lines(out) {
		object := map[string]any{}
		require.NoError(t, json.Unmarshal([]byte(line), &object), line)
		objects = append(objects, object)
	}
	return objects
}

// taskID returns the id in "task …: …".
func taskID(t *testing.T, notes string) string {
	t.Helper()
	for line := range strings.Lines(notes) {
		if rest, ok := strings.CutPrefix(line, "task "); ok {
			id, _, _ := strings.Cut(rest, ":")
			return id
		}
	}
	t.Fatalf("no task in %q", notes)
	return ""
}

func TestSendPrintsTheResult(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		got := errand(t.Context(), with(at, "send", "to", "be or not")...)
		require.Zero(t, got.code, got.err)
		require.Equal(t, "to be or not\nsaid \"to be or not\"\n", got.out)
		require.Contains(t, got.err, "working: working on it\n")
		require.Contains(t, got.err, ": completed\n")
	})
}

func TestSendPrintsADirectAnswer(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		for _, command := range []string{"send", "stream"} {
			got := errand(t.Context(), with(at, command, "msg")...)
			require.Zero(t, got.code, got.err)
			require.Equal(t, "direct\n", got.out)
			got = errand(t.Context(), with(at, command, "msg", "-o", "json")...)
			require.Contains(t, lines(t, got.out)[0], "message")
		}
	})
}

func TestExitCodeTellsHowTheTaskEnded(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		for text, code := range map[string]int{"fail": 3, "reject": 4, "ask": 0, "fine": 0} {
			for _, command := range []string{"send", "stream"} {
				for _, output := range []string{"text", "json"} {
					require.Equal(t, code, errand(t.Context(), with(at, command, text, "-o", output)...).code, "%s %s", command, text)
				}
			}
		}
	})
}

func TestSendInJSONPrintsTheWholeTask(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		got := errand(t.Context(), with(at, "send", "-o", "json", "fine")...)
		require.Zero(t, got.code)
		task := lines(t, got.out)[0]["task"].(map[string]any)
		require.Equal(t, "TASK_STATE_COMPLETED", task["status"].(map[string]any)["state"])
		require.NotEmpty(t, task["history"])
		require.NotEmpty(t, task["artifacts"])
	})
}

func TestStreamInJSONPrintsAnEventALine(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		got := errand(t.Context(), with(at, "stream", "-o", "json", "one two")...)
		require.Zero(t, got.code)
		var kinds []string
		for _, event := range lines(t, got.out) {
			for kind := range event {
				kinds = append(kinds, kind)
			}
		}
		require.Equal(t, []string{"task", "statusUpdate", "artifactUpdate", "artifactUpdate", "statusUpdate"}, kinds)
	})
}

func TestQuestionIsAnsweredWithTheCommandThatIsShown(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		asked := errand(t.Context(), with(at, "send", "ask")...)
		require.Zero(t, asked.code)
		require.Equal(t, "which colour?\n", asked.out)
		id := taskID(t, asked.err)
		require.Contains(t, asked.err, "errand send --url "+at[1]+" --binding "+at[3]+" --task "+id)

		answered := errand(t.Context(), with(at, "send", "--task", id, "blue")...)
		require.Zero(t, answered.code)
		require.Contains(t, answered.out, "blue\n")
		require.Equal(t, id, taskID(t, answered.err))
	})
}

func TestReturnImmediatelyLeavesTheWaitingToSubscribe(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, agent *clienttest.Agent, at ...string) {
		sent := errand(t.Context(), with(at, "send", "--return-immediately", "wait")...)
		require.Zero(t, sent.code)
		id := strings.TrimSpace(sent.out)
		go agent.Release()
		got := errand(t.Context(), with(at, "subscribe", id)...)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "wait\n")
	})
}

func TestGetListAndCancel(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		sent := errand(t.Context(), with(at, "send", "--return-immediately", "wait")...)
		id := strings.TrimSpace(sent.out)
		canceled := errand(t.Context(), with(at, "cancel", id)...)
		require.Zero(t, canceled.code, canceled.err)
		require.Equal(t, "task "+id+": canceled\n", canceled.err)
		require.Equal(t, exitCanceled, errand(t.Context(), with(at, "subscribe", id)...).code)

		got := errand(t.Context(), with(at, "get", id)...)
		require.Zero(t, got.code)
		require.Contains(t, got.out, "state:    canceled\n")
		require.Contains(t, got.out, "user:     wait\n")
		require.Contains(t, got.out, "message:  as you wish\n")
		got = errand(t.Context(), with(at, "get", "-o", "json", "--history", "0", id)...)
		require.Equal(t, id, lines(t, got.out)[0]["id"])
		require.NotContains(t, lines(t, got.out)[0], "history")

		done := taskID(t, errand(t.Context(), with(at, "send", "fine")...).err)
		list := errand(t.Context(), with(at, "list")...)
		require.Zero(t, list.code, list.err)
		require.Len(t, strings.Split(strings.TrimSpace(list.out), "\n"), 3)
		list = errand(t.Context(), with(at, "list", "-o", "json", "--state", "completed")...)
		require.Equal(t, done, lines(t, list.out)[0]["id"])
		require.Len(t, lines(t, list.out), 1)
		require.Len(t, lines(t, errand(t.Context(), with(at, "list", "-o", "json", "--limit", "1")...).out), 1)
	})
}

func TestCardShowsTheAgent(t *testing.T) {
	t.Parallel()
	agent := clienttest.Start(t)
	got := errand(t.Context(), "card", "--url", agent.URL+"/.well-known/agent-card.json")
	require.Zero(t, got.code, got.err)
	require.Contains(t, got.out, "foreign 1\nAn agent of the official SDK\n")
	require.Contains(t, got.out, "HTTP+JSON 1.0  "+agent.URL+"/rest\n")
	require.Contains(t, got.out, "capabilities: streaming\n")
	got = errand(t.Context(), "card", "--url", agent.URL, "-o", "json")
	require.Equal(t, "foreign", lines(t, got.out)[0]["name"])
}

func TestUnknownTaskIsAnErrorWithItsReason(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		for _, args := range [][]string{{"get", "nope"}, {"cancel", "nope"}, {"subscribe", "nope"}, {"send", "--task", "nope", "hi"}} {
			got := errand(t.Context(), with(at, args...)...)
			require.Equal(t, exitFailed, got.code)
			require.Contains(t, got.err, "TASK_NOT_FOUND", args)
			require.Empty(t, got.out)
		}
	})
}

func TestEmptyTaskIDIsAnError(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, _ *clienttest.Agent, at ...string) {
		for _, command := range []string{"get", "cancel", "subscribe"} {
			got := errand(t.Context(), with(at, command, "")...)
			require.Equal(t, exitFailed, got.code, command)
			require.Contains(t, got.err, "errand: ", command)
		}
	})
}

func TestUsage(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		args []string
		code int
	}{
		"no command":               {nil, exitUsage},
		"an unknown command":       {[]string{"fetch"}, exitUsage},
		"an unknown flag":          {[]string{"get", "--now", "t"}, exitUsage},
		"an unknown binding":       {[]string{"get", "--binding", "soap", "t"}, exitUsage},
		"no id":                    {[]string{"get"}, exitUsage},
		"a malformed time":         {[]string{"list", "--since", "yesterday"}, exitUsage},
		"an unknown state":         {[]string{"list", "--state", "lost"}, exitFailed},
		"a header without a value": {[]string{"get", "-H", "nonsense", "t"}, exitFailed},
		"nothing to send":          {[]string{"send"}, exitFailed},
		"data that is no JSON":     {[]string{"send", "--data", "{"}, exitFailed},
		"a file that isn't there":  {[]string{"send", "--file", "/nowhere"}, exitFailed},
		"a URL without a scheme":   {[]string{"get", "--url", "localhost:1", "t"}, exitFailed},
		"nobody there":             {[]string{"get", "--url", "http://127.0.0.1:1", "t"}, exitFailed},
		"help":                     {[]string{"--help"}, 0},
		"help for a command":       {[]string{"send", "--help"}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := errand(t.Context(), test.args...)
			require.Equal(t, test.code, got.code, got.err)
			require.Equal(t, test.code == 0, got.out != "")
			require.Equal(t, test.code != 0, strings.HasPrefix(got.err, "errand: "), got.err)
		})
	}
}

// wire is an agent that keeps what it is sent and completes at once.
type wire struct {
	mu      sync.Mutex
	params  map[string]any
	headers http.Header
}

func startWire(t *testing.T) (*wire, string) {
	t.Helper()
	w := &wire{}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/agents/orders/.well-known/agent-card.json", func(out http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(out, `{"name":"orders","supportedInterfaces":[{"url":"`+server.URL+
			`/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	})
	mux.HandleFunc("/rpc", func(out http.ResponseWriter, r *http.Request) {
		var request struct {
			Params map[string]any `json:"params"`
		}
		_ = json.NewDecoder(r.Body).Decode(&request)
		w.mu.Lock()
		defer w.mu.Unlock()
		w.params, w.headers = request.Params, r.Header
		_, _ = io.WriteString(out, `{"jsonrpc":"2.0","id":"1","result":{"message":{"messageId":"a","role":"ROLE_AGENT","parts":[{"text":"ok"}]}}}`)
	})
	return w, server.URL
}

func TestEverythingThatIsGivenIsSent(t *testing.T) {
	t.Parallel()
	w, base := startWire(t)
	dir := t.TempDir()
	csv, fields := filepath.Join(dir, "invoices.csv"), filepath.Join(dir, "fields.json")
	require.NoError(t, os.WriteFile(csv, []byte("a,b\n"), 0o600))
	require.NoError(t, os.WriteFile(fields, []byte(`{"a":[1]}`), 0o600))
	got := errand(t.Context(), "send", "--url", base, "--agent", "orders", "--tenant", "acme", "-H", "Authorization: Bearer x",
		"--task", "t", "--context", "c", "--message-id", "m", "--reference", "r1", "--reference", "r2", "--history", "2",
		"--file", csv, "--data", "@"+fields, "--data", `"x,y"`, "hello", "there")
	require.Zero(t, got.code, got.err)
	require.Equal(t, "ok\n", got.out)
	require.Equal(t, "Bearer x", w.headers.Get("Authorization"))
	want := `{"tenant":"acme","configuration":{"historyLength":2,"returnImmediately":true},"message":{"messageId":"m","taskId":"t",
		"contextId":"c","role":"ROLE_USER","referenceTaskIds":["r1","r2"],"parts":[{"text":"hello there"},
		{"raw":"YSxiCg==","filename":"invoices.csv","mediaType":"text/csv; charset=utf-8"},{"data":{"a":[1]}},{"data":"x,y"}]}}`
	sent, err := json.Marshal(w.params)
	require.NoError(t, err)
	require.JSONEq(t, want, string(sent))
}

func TestTextFromStandardInputIsUTF8(t *testing.T) {
	t.Parallel()
	got := errandWith(t.Context(), "a\xff", "send")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, "errand: the text is not UTF-8: send it with --file\n", got.err)
}

func TestTextComesFromStandardInput(t *testing.T) {
	t.Parallel()
	agent := clienttest.Start(t)
	for _, args := range [][]string{{"send"}, {"send", "-"}} {
		got := errandWith(t.Context(), "from a pipe\n", append(args, "--url", agent.URL)...)
		require.Zero(t, got.code, got.err)
		require.Contains(t, got.out, "from a pipe\n")
	}
}

// interruptible cancels a command once it has written something to a stream.
type interruptible struct {
	bytes.Buffer

	mark   string
	cancel context.CancelFunc
}

func (w *interruptible) Write(p []byte) (int, error) {
	n, err := w.Buffer.Write(p)
	if strings.Contains(w.String(), w.mark) {
		w.cancel()
	}
	return n, err
}

func TestInterruptLeavesTheTaskRunningAndSaysHowToGoOn(t *testing.T) {
	t.Parallel()
	onEachBinding(t, func(t *testing.T, agent *clienttest.Agent, at ...string) {
		for _, command := range []string{"send", "stream"} {
			ctx, cancel := context.WithCancel(t.Context())
			notes := &interruptible{mark: "working on it", cancel: cancel}
			code := runContext(ctx, with(at, command, "wait"), newConsole(strings.NewReader(""), io.Discard, notes))
			require.Equal(t, exitInterrupted, code)
			_, hint, found := strings.Cut(notes.String(), "goes on; follow it with: errand ")
			require.True(t, found, notes.String())

			go agent.Release()
			got := errand(t.Context(), strings.Fields(hint)...)
			require.Zero(t, got.code, got.err)
			require.Contains(t, got.out, "wait\n")
		}
	})
}

func TestInterruptBeforeAnyAnswerNamesTheMessage(t *testing.T) {
	t.Parallel()
	agent := clienttest.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	base := proxy(t, agent.URL, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPost {
			_, _ = io.Copy(io.Discard, r.Body)
			cancel()
			<-r.Context().Done()
			return true
		}
		return false
	})
	got := errand(ctx, "send", "--url", base, "--message-id", "m-1", "hello")
	require.Equal(t, exitInterrupted, got.code)
	require.Contains(t, got.err, "--message-id m-1")
}

// proxy stands before an agent on JSON-RPC; hook may answer in its place.
func proxy(t *testing.T, agent string, hook func(w http.ResponseWriter, r *http.Request) bool) string {
	t.Helper()
	target, err := url.Parse(agent)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) {},
		ErrorLog:      nil,
	}
	mux := http.NewServeMux()
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	mux.HandleFunc("/.well-known/agent-card.json", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"name":"x","capabilities":{"streaming":true},"supportedInterfaces":[{"url":"`+server.URL+
			`/rpc","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}`)
	})
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !hook(w, r) {
			forward.ServeHTTP(w, r)
		}
	})
	return server.URL
}

// cutter breaks a response off after some bytes.
type cutter struct {
	http.ResponseWriter

	left int
}

func (c *cutter) Write(p []byte) (int, error) {
	if c.left -= len(p); c.left < 0 {
		panic(http.ErrAbortHandler)
	}
	return c.ResponseWriter.Write(p)
}

func (c *cutter) Unwrap() http.ResponseWriter { return c.ResponseWriter }

func TestCutStreamsChangeNothingInTheResult(t *testing.T) {
	t.Parallel()
	agent := clienttest.Start(t)
	target, err := url.Parse(agent.URL)
	require.NoError(t, err)
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, FlushInterval: -1}
	text := strings.Repeat("word ", 50)
	for _, room := range []int{600, 1500, 4000} {
		streams := 0
		base := proxy(t, agent.URL, func(w http.ResponseWriter, r *http.Request) bool {
			if !strings.Contains(r.Header.Get("Accept"), "event-stream") || streams > 2 {
				return false
			}
			streams++
			forward.ServeHTTP(&cutter{w, room}, r)
			return true
		})
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		got := errand(ctx, "stream", "--url", base, text)
		cancel()
		require.Zero(t, got.code, got.err)
		require.True(t, strings.HasPrefix(got.out, strings.TrimSpace(text)+"\n"), got.out)
	}
}

func TestRefusedFieldsAreNamed(t *testing.T) {
	t.Parallel()
	agent := clienttest.Start(t)
	base := proxy(t, agent.URL, func(w http.ResponseWriter, _ *http.Request) bool {
		_, _ = io.WriteString(w, `{"jsonrpc":"2.0","id":"1","error":{"code":-32602,"message":"invalid","data":[
			{"@type":"type.googleapis.com/google.rpc.BadRequest","fieldViolations":[{"field":"message.parts[0]","description":"too large"}]}]}}`)
		return true
	})
	got := errand(t.Context(), "get", "--url", base, "t")
	require.Equal(t, exitFailed, got.code)
	require.Equal(t, "errand: GetTask: invalid (INVALID_PARAMS)\n  message.parts[0]: too large\n", got.err)
}
