package admission

import (
	"regexp"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// Version is the protocol version that is served.
const Version = "1.0"

// A patch number says nothing about the wire (A2A §3.6).
var served = regexp.MustCompile(`^1(\.0(\.[0-9]+)?)?$`)

// checkVersion takes the header first, then the query parameter. Without either
// the request is of version 0.3, unless the operator says otherwise.
func checkVersion(r Request, fallback string) error {
	version := ""
	if values := r.Metadata.Values("A2A-Version"); len(values) > 0 {
		version = values[0]
	}
	if version == "" {
		version = r.QueryVersion
	}
	if version == "" {
		version = fallback
	}
	if !served.MatchString(version) {
		return a2aerr.VersionNotSupported(version, Version)
	}
	return nil
}
