package auth_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/auth"
)

func TestAnonymousIgnoresWhatTheRequestClaims(t *testing.T) {
	t.Parallel()
	var a auth.Authenticator = auth.Anonymous{}
	got, err := a.Authenticate(t.Context(), http.Header{"Authorization": {"Bearer x"}})
	require.NoError(t, err)
	require.Equal(t, auth.Identity{Subject: "anonymous", Tenant: "default"}, got)
}
