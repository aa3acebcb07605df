package client

import (
	"errors"
	"net/http"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/sse"
)

// Whatever a server answers is a response, an error of the server, or a breach
// of the protocol.
func FuzzResponses(f *testing.F) {
	for _, seed := range []string{
		``, `{}`, `[]`, `null`, `"x"`, `{"result":null}`, `{"result":{"task":{"id":"t"}}}`, `{"task":{"id":"t","status":{"state":7}}}`,
		`{"error":{"code":-32001,"message":"no","data":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"1s"}]}}`,
		`{"error":{"code":404,"message":"no","details":[{"@type":1},{"@type":"x"},null,[]]}}`, `{"error":[]}`, `{"error":"x"}`,
	} {
		f.Add([]byte(seed), http.StatusOK)
		f.Add([]byte(seed), http.StatusBadRequest)
	}
	f.Fuzz(func(t *testing.T, body []byte, status int) {
		a := &answer{status: status, header: http.Header{"Retry-After": {string(body)}}, body: body}
		typed := func(err error) {
			require.True(t, err == nil || errors.Is(err, ErrProtocol) || asError(err) != nil, "%v", err)
		}
		typed(restResult(a, &a2apb.SendMessageResponse{}))
		typed(newJSONRPC("", Options{}).result(a, &a2apb.SendMessageResponse{}))
		_, err := decodeREST(sse.Event{Data: body})
		typed(err)
		typed(decodeRPC(body, &a2apb.StreamResponse{}))
	})
}
