package admission

import (
	"slices"
	"strings"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
)

// negotiate returns the active extensions and tells the sender about them; it
// fails if the card requires one that the request does not list (A2A §3.3.4).
func (s *Sender) negotiate(agent *config.Agent) ([]string, error) {
	requested := listed(s.request.Metadata.Values("A2A-Extensions"))
	var active []string
	for _, ext := range agent.Card.GetCapabilities().GetExtensions() {
		switch {
		case slices.Contains(requested, ext.GetUri()):
			active = append(active, ext.GetUri())
		case ext.GetRequired():
			return nil, a2aerr.ExtensionSupportRequired(ext.GetUri())
		}
	}
	if len(active) > 0 {
		s.request.Activated(active)
	}
	return active, nil
}

// listed splits lists of URIs, which may be spread over several lines.
func listed(lines []string) []string {
	var uris []string
	for _, line := range lines {
		for uri := range strings.SplitSeq(line, ",") {
			if uri = strings.TrimSpace(uri); uri != "" {
				uris = append(uris, uri)
			}
		}
	}
	return uris
}
