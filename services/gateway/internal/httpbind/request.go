package httpbind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/services/gateway/internal/admission"
	"github.com/errandhq/errand/services/gateway/internal/load"
)

// Media types of JSON bodies (A2A §9.1, §11.1).
const (
	JSON    = "application/json"
	A2AJSON = "application/a2a+json"
)

// CheckContentType refuses a body of another media type. A request without a
// body needs none.
func CheckContentType(r *http.Request, accepted ...string) error {
	header := r.Header.Get("Content-Type")
	if header == "" && r.ContentLength == 0 {
		return nil
	}
	if !slices.Contains(accepted, baseType(header)) {
		return a2aerr.MediaTypeNotSupported(header, strings.Join(accepted, " or "))
	}
	return nil
}

// IsMediaType tells whether a Content-Type can be parsed.
func IsMediaType(header string) bool { return baseType(header) != "" }

// baseType is a media type without parameters; empty for what is none.
func baseType(header string) string {
	base, _, err := mime.ParseMediaType(header)
	if err != nil {
		return ""
	}
	return base
}

// Accepts tells whether the Accept header names a media type.
func Accepts(r *http.Request, mediaType string) bool {
	for _, line := range r.Header.Values("Accept") {
		for entry := range strings.SplitSeq(line, ",") {
			if baseType(entry) == mediaType {
				return true
			}
		}
	}
	return false
}

// ReadBody reads a body of at most limit bytes.
func ReadBody(w http.ResponseWriter, r *http.Request, limit int) ([]byte, error) {
	if r.ContentLength > int64(limit) {
		return nil, tooLarge(limit)
	}
	body, err := io.ReadAll(held{r.Context(), http.MaxBytesReader(w, r.Body, int64(limit))})
	var exceeded *http.MaxBytesError
	var refused *a2aerr.Error
	switch {
	case errors.As(err, &exceeded):
		return nil, tooLarge(limit)
	case errors.As(err, &refused):
		return nil, refused
	case err != nil:
		return nil, a2aerr.ParseError("the body ended early")
	}
	return body, nil
}

// held counts what it reads among the bodies of all requests. Not what a sender
// announces: that would be held while nothing comes.
type held struct {
	ctx context.Context //nolint:containedctx // of one read to the end
	io.Reader
}

func (h held) Read(p []byte) (int, error) {
	n, err := h.Reader.Read(p)
	if refused := load.Hold(h.ctx, n); refused != nil {
		return n, refused
	}
	return n, err //nolint:wrapcheck // as a reader does
}

func tooLarge(limit int) error {
	return a2aerr.TooLarge("body", fmt.Sprintf("may have at most %d bytes", limit))
}

// Admission is what the gate wants to know of a request.
func Admission(w http.ResponseWriter, r *http.Request) admission.Request {
	return admission.Request{
		Metadata:     r.Header,
		QueryVersion: queryVersion(r.URL.Query()),
		Base:         Base(r.Context()),
		Activated: func(uris []string) {
			w.Header().Set("A2A-Extensions", strings.Join(uris, ", "))
		},
	}
}

// queryVersion is the query parameter A2A-Version. Names of service parameters
// have no case (A2A §3.6.1).
func queryVersion(query url.Values) string {
	for _, name := range slices.Sorted(maps.Keys(query)) { // one answer for two spellings
		if strings.EqualFold(name, "A2A-Version") {
			return query.Get(name)
		}
	}
	return ""
}
