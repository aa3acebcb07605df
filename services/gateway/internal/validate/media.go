package validate

import (
	"mime"
	"slices"
	"strconv"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// MediaTypes checks the parts that declare a media type against the input modes
// of the card and its skills (A2A §3.1.1). Which skill a message is for is not
// known here, so the modes of all of them count.
func MediaTypes(parts []*a2apb.Part, card *a2apb.AgentCard) error {
	accepted := slices.Clone(card.GetDefaultInputModes())
	for _, skill := range card.GetSkills() {
		accepted = append(accepted, skill.GetInputModes()...)
	}
	if len(accepted) == 0 {
		return nil
	}
	for i, p := range parts {
		if p.GetMediaType() != "" && !covered(p.GetMediaType(), accepted) {
			return a2aerr.ContentTypeNotSupported("message.parts["+strconv.Itoa(i)+"]", p.GetMediaType(), accepted)
		}
	}
	return nil
}

// covered compares without parameters and case; modes may be "type/*" and "*/*".
func covered(mediaType string, modes []string) bool {
	got, _, err := mime.ParseMediaType(mediaType)
	if err != nil {
		return false
	}
	family, _, _ := strings.Cut(got, "/")
	return slices.ContainsFunc(modes, func(mode string) bool {
		mode, _, _ = strings.Cut(strings.ToLower(mode), ";")
		mode = strings.TrimSpace(mode)
		return mode == got || mode == family+"/*" || mode == "*/*" || mode == "*"
	})
}
