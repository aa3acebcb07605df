package main

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	"github.com/errandhq/errand/pkg/client"
)

const defaultURL = "http://localhost:8080"

// target says which agent is meant and how it is spoken to.
type target struct {
	URL     string   `name:"url" help:"Base URL of the server, or URL of an agent card." env:"ERRAND_URL" default:"http://localhost:8080"`
	Agent   string   `help:"Agent of an Errand server; its default agent if not given." placeholder:"NAME"`
	Tenant  string   `help:"Tenant to name in each request; the one of the agent card if not given." placeholder:"ID"`
	Binding string   `help:"Binding: jsonrpc, rest or grpc; the first of the agent card if not given." enum:",jsonrpc,rest,grpc" default:"" placeholder:"NAME"`
	Header  []string `short:"H" help:"Header for each request, such as credentials; may be repeated." placeholder:"NAME:VALUE" sep:"none"`
	Output  string   `short:"o" help:"Output: text, or json as the protocol has it, one object a line." enum:"text,json" default:"text"`
	Verbose bool     `short:"v" help:"Tell about retries."`
}

var bindings = map[string][]string{
	"":        nil,
	"jsonrpc": {client.JSONRPC},
	"rest":    {client.HTTPJSON},
	"grpc":    {client.GRPC},
}

func (t *target) json() bool { return t.Output == "json" }

// connect reads the agent's card. The caller closes the client.
func (t *target) connect(ctx context.Context, c *console) (*client.Client, error) {
	opts := client.Options{Bindings: bindings[t.Binding], Tenant: t.Tenant, Header: http.Header{}}
	for _, line := range t.Header {
		name, value, ok := strings.Cut(line, ":")
		if !ok || strings.TrimSpace(name) == "" {
			return nil, fmt.Errorf("header %q: want NAME:VALUE", line)
		}
		opts.Header.Add(strings.TrimSpace(name), strings.TrimSpace(value))
	}
	if t.Verbose {
		opts.Logger = slog.New(slog.NewTextHandler(notes{c}, nil))
	}
	base := t.URL
	if t.Agent != "" {
		joined, err := url.JoinPath(base, "agents", t.Agent, "/")
		if err != nil {
			return nil, fmt.Errorf("URL: %w", err)
		}
		base = joined
	}
	return client.New(ctx, base, opts)
}

// again returns a command line that reaches the same agent.
func (t *target) again(command string, args ...string) string {
	line := []string{"errand", command}
	for _, flag := range []struct{ name, value, unset string }{
		{"--url", t.URL, defaultURL}, {"--agent", t.Agent, ""}, {"--tenant", t.Tenant, ""}, {"--binding", t.Binding, ""},
	} {
		if flag.value != flag.unset {
			line = append(line, flag.name, flag.value)
		}
	}
	return strings.Join(append(line, args...), " ")
}

// notes makes a writer of a console's notes, for a logger.
type notes struct{ *console }

func (n notes) Write(line []byte) (int, error) {
	n.notef("%s", strings.TrimSuffix(string(line), "\n"))
	return len(line), nil
}
