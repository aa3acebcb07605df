package conformance_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// requirements are the ids of the official kit (branch 1.0-dev). A reason says
// why no test of this suite is about one.
var requirements = map[string]string{
	"CORE-SEND-001": "", "CORE-SEND-002": "", "CORE-SEND-003": "",
	"CORE-STREAM-001": "", "CORE-STREAM-002": "", "CORE-STREAM-003": "",
	"CORE-GET-001": "", "CORE-GET-002": "",
	"CORE-LIST-001": "", "CORE-LIST-002": "", "CORE-LIST-003": "", "CORE-LIST-004": "", "CORE-LIST-005": "",
	"CORE-CANCEL-001": "", "CORE-CANCEL-002": "", "CORE-CANCEL-003": "",
	"CORE-EXECUTION-MODE-001": "", "CORE-EXECUTION-MODE-002": "",
	"CORE-ERR-001": "", "CORE-ERR-002": "",
	"CORE-CAP-001": "", "CORE-CAP-002": "", "CORE-CAP-003": "", "CORE-CAP-004": "",
	"CORE-MULTI-001": "", "CORE-MULTI-001a": "", "CORE-MULTI-002": "", "CORE-MULTI-002a": "", "CORE-MULTI-003": "",
	"CORE-MULTI-004": "", "CORE-MULTI-005": "", "CORE-MULTI-006": "",
	"CORE-HIST-001": "", "CORE-HIST-002": "", "CORE-HIST-003": "", "CORE-HIST-004": "", "CORE-HIST-005": "", "CORE-HIST-006": "",
	"DM-TASK-001": "", "DM-TASK-002": "", "DM-MSG-001": "", "DM-MSG-002": "", "DM-PART-001": "", "DM-ART-001": "", "DM-STATUS-001": "",
	"DM-SERIAL-001": "", "DM-SERIAL-002": "", "DM-SERIAL-003": "", "DM-SERIAL-004": "", "DM-SERIAL-005": "",
	"GRPC-SVC-001": "", "GRPC-SVC-002": "", "GRPC-META-001": "", "GRPC-ERR-001": "", "GRPC-ERR-002": "", "GRPC-ERR-003": "",
	"GRPC-SVC-003":      "TLS ends before Errand",
	"HTTP_JSON-URL-001": "", "HTTP_JSON-URL-002": "", "HTTP_JSON-SVC-001": "", "HTTP_JSON-SVC-002": "", "HTTP_JSON-QP-001": "",
	"HTTP_JSON-ERR-001": "", "HTTP_JSON-ERR-002": "", "HTTP_JSON-STATUS-001": "", "HTTP_JSON-SSE-001": "",
	"JSONRPC-FMT-001": "", "JSONRPC-FMT-002": "", "JSONRPC-SVC-001": "", "JSONRPC-SVC-002": "",
	"JSONRPC-ERR-001": "", "JSONRPC-ERR-002": "", "JSONRPC-ERR-003": "", "JSONRPC-SSE-001": "", "JSONRPC-SSE-002": "",
	"STREAM-ORDER-001": "", "STREAM-ORDER-002": "", "STREAM-ORDER-003": "", "STREAM-ORDER-004": "",
	"STREAM-SUB-001": "", "STREAM-SUB-002": "", "STREAM-SUB-003": "", "STREAM-SUB-004": "",
	"VER-CLIENT-001": "", "VER-CLIENT-002": "", "VER-SERVER-001": "", "VER-SERVER-002": "", "VER-SERVER-003": "",
	"CARD-DISC-001": "", "CARD-PROTO-001": "", "CARD-PROTO-002": "", "CARD-STRUCT-001": "",
	"CARD-CACHE-001": "", "CARD-CACHE-002": "", "CARD-CACHE-003": "",
	"CARD-EXT-001":   "needs authentication",
	"CARD-EXT-002":   "the agents file cannot declare an extended card yet",
	"CARD-SIGN-001":  "cards are not signed",
	"CARD-SIGN-002":  "cards are not signed",
	"CARD-SIGN-003":  "cards are not signed",
	"CARD-SIGN-004":  "cards are not signed",
	"BIND-EQUIV-001": "", "BIND-EQUIV-002": "", "BIND-EQUIV-003": "", "BIND-FIELD-001": "",
	"BIND-EQUIV-004":   "needs authentication",
	"PUSH-CREATE-001":  "push is not declared",
	"PUSH-CREATE-002":  "push is not declared",
	"PUSH-GET-001":     "push is not declared",
	"PUSH-GET-002":     "push is not declared",
	"PUSH-LIST-001":    "push is not declared",
	"PUSH-DEL-001":     "push is not declared",
	"PUSH-DEL-002":     "push is not declared",
	"PUSH-DELIVER-001": "push is not declared",
	"PUSH-DELIVER-002": "push is not declared",
	"PUSH-DELIVER-003": "push is not declared",
	"AUTH-INTASK-001":  "", "AUTH-INTASK-002": "", "AUTH-INTASK-003": "", "AUTH-INTASK-004": "", "AUTH-INTASK-005": "", "AUTH-INTASK-006": "",
	"AUTH-SCOPE-001": "", "AUTH-SCOPE-002": "", "AUTH-SCOPE-003": "",
	"AUTH-TLS-001":    "TLS ends before Errand",
	"AUTH-TLS-002":    "TLS ends before Errand",
	"AUTH-SERVER-001": "of clients",
	"AUTH-SERVER-002": "needs authentication",
}

var requirementID = regexp.MustCompile(`\b[A-Z_]+(-[A-Z]+)+-\d{3}a?\b`)

// Each requirement stands in the comment of a test, or has a reason; and the
// comments name none that there isn't.
func TestEveryRequirementHasATest(t *testing.T) {
	t.Parallel()
	tested := map[string]bool{}
	for _, comment := range commentsOfTests(t) {
		for _, id := range requirementID.FindAllString(comment, -1) {
			require.Contains(t, requirements, id)
			tested[id] = true
		}
	}
	for id, reason := range requirements {
		require.Equal(t, reason == "", tested[id], "%s: %s", id, reason)
	}
}

func commentsOfTests(t *testing.T) []string {
	t.Helper()
	var comments []string
	entries, err := os.ReadDir(".")
	require.NoError(t, err)
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), entry.Name(), nil, parser.ParseComments)
		require.NoError(t, err)
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok && strings.HasPrefix(f.Name.Name, "Test") {
				comments = append(comments, f.Doc.Text())
			}
		}
	}
	return comments
}
