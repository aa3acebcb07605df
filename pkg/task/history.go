package task

import a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

// TrimHistory keeps the n newest messages, in order (A2A §3.2.4): 0 leaves the
// history out, a negative n keeps all.
func TrimHistory(t *a2apb.Task, n int) {
	switch {
	case n == 0:
		t.History = nil
	case n > 0 && len(t.GetHistory()) > n:
		t.History = t.History[len(t.History)-n:]
	}
}
