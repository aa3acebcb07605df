package a2ajson

import (
	"strconv"
	"strings"

	"github.com/errandhq/errand/pkg/a2aerr"
)

// path is where a value stands in a document; nil is the document itself. It is
// written out for an error only: keys may be long and values many.
type path struct {
	parent *path
	name   string
	index  int // for an element, which has no name
}

func (p *path) member(name string) *path { return &path{parent: p, name: name} }

func (p *path) element(i int) *path { return &path{parent: p, index: i} }

func (p *path) invalid(allowed string) error { return a2aerr.Invalid(p.String(), allowed) }

// String is the dotted path that senders see, or its beginning.
func (p *path) String() string {
	if p == nil {
		return "body"
	}
	var steps []*path
	for step := p; step != nil; step = step.parent {
		steps = append(steps, step)
	}
	const longest = 200
	var out strings.Builder
	for i := len(steps) - 1; i >= 0 && out.Len() < longest; i-- {
		switch step := steps[i]; {
		case step.name == "" && step.parent != nil:
			out.WriteString("[" + strconv.Itoa(step.index) + "]")
		case out.Len() > 0:
			out.WriteString("." + step.name[:min(longest, len(step.name))])
		default:
			out.WriteString(step.name[:min(longest, len(step.name))])
		}
	}
	return out.String()
}
