package gateway

import (
	"context"
	"net/http"

	"github.com/errandhq/errand/services/gateway/internal/card"
)

// Handler returns what the HTTP server of s serves, for a server with other
// timeouts.
func (s *Service) Handler(ctx context.Context) (http.Handler, error) {
	return s.handler(ctx, card.Addresses{HTTP: "http://localhost", GRPC: "localhost:1"})
}
