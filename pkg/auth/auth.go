// Package auth tells who sent a request.
package auth

import "context"

// Identity is the authenticated sender of a request.
type Identity struct {
	// Subject owns the tasks that it creates.
	Subject string
	// Tenant is the subject's own tenant.
	Tenant string
}

// Metadata is what came with a request beside its body: HTTP headers or gRPC
// metadata. Names are case-insensitive; a name that is absent has no values.
type Metadata interface {
	Values(name string) []string
}

// Authenticator finds out who sent a request. Identity comes from the metadata
// alone, never from the body (A2A §7). Missing or bad credentials are an
// a2aerr.Unauthenticated.
type Authenticator interface {
	Authenticate(ctx context.Context, m Metadata) (Identity, error)
}

// Anonymous takes every sender for the same one.
type Anonymous struct{}

// Authenticate returns the subject "anonymous" of the tenant "default".
func (Anonymous) Authenticate(context.Context, Metadata) (Identity, error) {
	return Identity{Subject: "anonymous", Tenant: "default"}, nil
}
