package validate

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// ID checks an id that must be there. Ids are opaque otherwise: whether they
// name something is for the store to say.
func ID(field, id string, limit int) error {
	if id == "" {
		return a2aerr.Invalid(field, "must not be empty")
	}
	return optionalID(field, id, limit)
}

// optionalID bounds an id, so that it fits an index, a log line and a header.
func optionalID(field, id string, limit int) error {
	switch {
	case len(id) > limit:
		return a2aerr.Invalid(field, fmt.Sprintf("may have at most %d bytes", limit))
	case !utf8.ValidString(id):
		return a2aerr.Invalid(field, "must be valid Unicode text")
	case strings.ContainsFunc(id, unicode.IsControl):
		return a2aerr.Invalid(field, "must not have control characters")
	}
	return nil
}

// HistoryLength checks a historyLength; unset is 0 here.
func HistoryLength(field string, n int32) error {
	if n < 0 {
		return a2aerr.Invalid(field, "must not be negative")
	}
	return nil
}
