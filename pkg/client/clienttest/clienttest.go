// Package clienttest runs an agent that Errand has no part in: one built with
// the official Go SDK, on all three bindings.
package clienttest

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/a2aproject/a2a-go/v2/a2a"
	a2agrpc "github.com/a2aproject/a2a-go/v2/a2agrpc/v1"
	"github.com/a2aproject/a2a-go/v2/a2asrv"
	"github.com/a2aproject/a2a-go/v2/a2asrv/taskstore"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
)

// Agent is a running agent. It reads the text of a message: "ask" asks for
// input and completes with the answer, "msg" answers with a direct Message,
// "fail" and "reject" end so, "wait" works until Release, and anything else
// comes back as an artifact of one chunk per word.
type Agent struct {
	// URL is the base under which the card is.
	URL string

	http    *httptest.Server
	grpc    *grpc.Server
	serving sync.WaitGroup
	release chan struct{}
}

// Start runs an agent until the test ends.
func Start(t testing.TB) *Agent {
	t.Helper()
	agent, err := New()
	require.NoError(t, err)
	t.Cleanup(agent.Close)
	return agent
}

// New runs an agent until Close.
func New() (*Agent, error) {
	agent := &Agent{release: make(chan struct{}), grpc: grpc.NewServer()}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for gRPC: %w", err)
	}
	store := taskstore.NewInMemory(&taskstore.InMemoryStoreConfig{
		Authenticator: func(context.Context) (string, error) { return "anonymous", nil },
	})
	handler := a2asrv.NewHandler(agent, a2asrv.WithTaskStore(store), a2asrv.WithLogger(slog.New(slog.DiscardHandler)))
	a2agrpc.NewHandler(handler).RegisterWith(agent.grpc)
	// It returns an error only if the listener breaks, which calls then show.
	agent.serving.Go(func() { _ = agent.grpc.Serve(listener) })

	mux := http.NewServeMux()
	agent.http = httptest.NewServer(mux)
	agent.URL = agent.http.URL
	mux.Handle("/rpc", a2asrv.NewJSONRPCHandler(handler))
	mux.Handle("/rest/", http.StripPrefix("/rest", a2asrv.NewRESTHandler(handler)))
	mux.Handle(a2asrv.WellKnownAgentCardPath, a2asrv.NewStaticAgentCardHandler(card(agent.URL, listener.Addr().String())))
	return agent, nil
}

// Close ends the agent and whatever is connected to it.
func (a *Agent) Close() {
	a.http.CloseClientConnections()
	a.http.Close()
	a.grpc.Stop()
	a.serving.Wait()
}

func card(httpURL, grpcAddress string) *a2a.AgentCard {
	return &a2a.AgentCard{
		Name: "foreign", Description: "An agent of the official SDK", Version: "1",
		Capabilities: a2a.AgentCapabilities{Streaming: true},
		SupportedInterfaces: []*a2a.AgentInterface{
			a2a.NewAgentInterface(httpURL+"/rpc", a2a.TransportProtocolJSONRPC),
			a2a.NewAgentInterface(httpURL+"/rest", a2a.TransportProtocolHTTPJSON),
			a2a.NewAgentInterface(grpcAddress, a2a.TransportProtocolGRPC),
		},
		DefaultInputModes: []string{"text/plain"}, DefaultOutputModes: []string{"text/plain"},
		Skills: []a2a.AgentSkill{{ID: "echo", Name: "Echo", Description: "Says it again", Tags: []string{"echo"}}},
	}
}

// Release lets one task that waits complete.
func (a *Agent) Release() { a.release <- struct{}{} }

// Execute implements [a2asrv.AgentExecutor].
func (a *Agent) Execute(ctx context.Context, exec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	text := messageText(exec.Message)
	if exec.StoredTask == nil && text == "msg" {
		return events(a2a.NewMessage(a2a.MessageRoleAgent, a2a.NewTextPart("direct")))
	}
	return func(yield func(a2a.Event, error) bool) {
		if exec.StoredTask == nil && !yield(a2a.NewSubmittedTask(exec, exec.Message), nil) {
			return
		}
		if !yield(status(exec, a2a.TaskStateWorking, "working on it"), nil) {
			return
		}
		if text == "wait" {
			select {
			case <-a.release:
			case <-ctx.Done():
				return
			}
		}
		for event := range result(exec, text) {
			if !yield(event, nil) {
				return
			}
		}
	}
}

// Cancel implements [a2asrv.AgentExecutor].
func (a *Agent) Cancel(_ context.Context, exec *a2asrv.ExecutorContext) iter.Seq2[a2a.Event, error] {
	return events(status(exec, a2a.TaskStateCanceled, "as you wish"))
}

func result(exec *a2asrv.ExecutorContext, text string) iter.Seq[a2a.Event] {
	return func(yield func(a2a.Event) bool) {
		switch text {
		case "ask":
			yield(status(exec, a2a.TaskStateInputRequired, "which colour?"))
			return
		case "fail":
			yield(status(exec, a2a.TaskStateFailed, "it broke"))
			return
		case "reject":
			yield(status(exec, a2a.TaskStateRejected, "not for me"))
			return
		}
		var id a2a.ArtifactID
		for i, word := range strings.Fields(text) {
			var event *a2a.TaskArtifactUpdateEvent
			if i == 0 {
				event = a2a.NewArtifactEvent(exec, a2a.NewTextPart(word))
				id = event.Artifact.ID
			} else {
				event = a2a.NewArtifactUpdateEvent(exec, id, a2a.NewTextPart(" "+word))
			}
			if !yield(event) {
				return
			}
		}
		yield(status(exec, a2a.TaskStateCompleted, fmt.Sprintf("said %q", text)))
	}
}

func status(exec *a2asrv.ExecutorContext, state a2a.TaskState, text string) a2a.Event {
	message := a2a.NewMessageForTask(a2a.MessageRoleAgent, exec, a2a.NewTextPart(text))
	return a2a.NewStatusUpdateEvent(exec, state, message)
}

func events(all ...a2a.Event) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		for _, event := range all {
			if !yield(event, nil) {
				return
			}
		}
	}
}

func messageText(m *a2a.Message) string {
	for _, part := range m.Parts {
		if text := part.Text(); text != "" {
			return text
		}
	}
	return ""
}
