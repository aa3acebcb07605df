package gateway

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/services/gateway/internal/card"
	"github.com/errandhq/errand/services/gateway/internal/httpbind"
)

// agentsPath begins the base path of every agent.
const agentsPath = "/agents/"

// router finds base path, agent and binding of a request. It is no http.ServeMux,
// which cleans paths and redirects, and whose patterns cannot tell A2A's routes
// apart.
type router struct {
	agents        *config.Agents
	logger        *slog.Logger
	jsonrpc, rest http.Handler
	// By base path; the root's is empty.
	cards map[string]http.Handler
}

func (h *router) addCards(at card.Addresses, modified time.Time) error {
	for i := range h.agents.Agents {
		agent := &h.agents.Agents[i]
		bases := []string{agentsPath + agent.Name}
		if agent.Default {
			bases = append(bases, "")
		}
		for _, base := range bases {
			served, err := card.NewHandler(card.Build(agent, base, at), modified, h.notAllowed)
			if err != nil {
				return fmt.Errorf("card of agent %s: %w", agent.Name, err)
			}
			h.cards[base] = served
		}
	}
	return nil
}

func (h *router) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	base, agent, ok := h.base(r.URL.Path)
	if !ok {
		h.notFound(w, r)
		return
	}
	if agent != nil {
		if r, ok = strip(r, base); !ok {
			h.notFound(w, r)
			return
		}
		r = r.WithContext(httpbind.WithBase(r.Context(), agent))
	}
	switch r.URL.Path {
	case card.Path, "/rpc" + card.Path:
		if c := h.cards[base]; c != nil {
			c.ServeHTTP(w, r)
			return
		}
		h.notFound(w, r)
	case "/rpc", "/rpc/":
		h.jsonrpc.ServeHTTP(w, r)
	default:
		h.rest.ServeHTTP(w, r)
	}
}

// base returns the base path and the agent that it names; at the root none.
func (h *router) base(path string) (base string, agent *config.Agent, ok bool) {
	rest, below := strings.CutPrefix(path, agentsPath)
	if !below {
		return "", nil, true
	}
	name, _, _ := strings.Cut(rest, "/")
	agent = h.agents.Agent(name)
	return agentsPath + name, agent, agent != nil
}

// strip takes the base off the path, in both spellings of it.
func strip(r *http.Request, base string) (*http.Request, bool) {
	path := strings.TrimPrefix(r.URL.Path, base)
	raw, ok := strings.CutPrefix(r.URL.RawPath, base)
	if path == "" || !ok && r.URL.RawPath != "" {
		return r, false
	}
	stripped := new(http.Request)
	*stripped = *r
	u := *r.URL
	u.Path, u.RawPath = path, raw
	stripped.URL = &u
	return stripped, true
}

func (h *router) notFound(w http.ResponseWriter, r *http.Request) {
	fail(w, r, h.logger, a2aerr.MethodNotFound(r.Method+" "+r.URL.Path))
}

func (h *router) notAllowed(w http.ResponseWriter, r *http.Request) {
	fail(w, r, h.logger, a2aerr.MethodNotAllowed(r.Method))
}
