package gateway

import (
	"context"
	"net"
	"net/http"
)

// Handler returns what the HTTP server of s serves, for a server with other
// timeouts.
func (s *Service) Handler(ctx context.Context) (http.Handler, error) {
	return s.handler(ctx, &net.TCPAddr{})
}
