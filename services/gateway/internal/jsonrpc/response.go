package jsonrpc

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/a2ajson"
)

// result encodes a response object.
func (r request) result(m proto.Message) ([]byte, error) {
	body, err := a2ajson.Marshal(m)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"result":%s}`, r.ID, body), nil
}

// failure encodes a response object with an error.
func (r request) failure(e *a2aerr.Error) ([]byte, error) {
	body, err := e.MarshalJSONRPC()
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":%s}`, r.ID, body), nil
}
