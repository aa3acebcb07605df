package card

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/a2ajson"
)

// Path is where a card stands below a base path.
const Path = "/.well-known/agent-card.json"

// Handler serves one card to anybody, without a look at the protocol version
// (A2A §8.2, §8.6).
type Handler struct {
	body     []byte
	etag     string
	modified time.Time
	refuse   func(http.ResponseWriter, *http.Request)
}

// NewHandler returns the handler of a card that last changed at a time. Methods
// other than GET, HEAD and OPTIONS are given to refuse.
func NewHandler(c *a2apb.AgentCard, modified time.Time, refuse func(http.ResponseWriter, *http.Request)) (*Handler, error) {
	body, err := a2ajson.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("encode card: %w", err)
	}
	sum := sha256.Sum256(body)
	return &Handler{body: body, etag: `"` + hex.EncodeToString(sum[:16]) + `"`, modified: modified, refuse: refuse}, nil
}

func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Expose-Headers", "ETag")
		header.Set("Cache-Control", "public, max-age=60")
		header.Set("Content-Type", "application/json")
		header.Set("ETag", h.etag)
		http.ServeContent(w, joinTags(r), "", h.modified, bytes.NewReader(h.body))
	case http.MethodOptions: // browsers ask first because of A2A-Version
		header.Set("Access-Control-Allow-Origin", "*")
		header.Set("Access-Control-Allow-Methods", "GET, HEAD")
		header.Set("Access-Control-Allow-Headers", "A2A-Version, A2A-Extensions, If-None-Match")
		header.Set("Access-Control-Max-Age", "86400")
		w.WriteHeader(http.StatusNoContent)
	default:
		header.Set("Allow", "GET, HEAD, OPTIONS")
		h.refuse(w, r)
	}
}

// joinTags makes one line of several If-None-Match lines, which say the same
// (RFC 9110 §5.3): net/http reads the first alone.
func joinTags(r *http.Request) *http.Request {
	lines := r.Header.Values("If-None-Match")
	if len(lines) < 2 {
		return r
	}
	joined := r.Clone(r.Context())
	joined.Header.Set("If-None-Match", strings.Join(lines, ", "))
	return joined
}
