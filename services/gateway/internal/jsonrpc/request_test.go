package jsonrpc

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
)

func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":7,"method":"GetTask","params":{"id":"x"}}`, `{"jsonrpc":"2.0","id":7,"method":`, `[]`, `{}`, `"hi"`, `null`,
		`{"jsonrpc":"2.0","id":"\u0041","method":"SendMessage"}`, `{"id":[[[[]]]]}`, "{\"id\":\"\xff\"}", `{"id":1,"id":2}`,
	} {
		f.Add([]byte(seed))
	}
	limits := config.DefaultLimits()
	known := []string{a2aerr.ReasonParseError, a2aerr.ReasonInvalidRequest, a2aerr.ReasonInvalidParams}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := parse(body, limits)
		require.True(t, json.Valid(r.ID), "there is always an id to answer with")
		if err != nil {
			e := a2aerr.From(err)
			require.Contains(t, known, e.Reason)
			answer, err := r.failure(e)
			require.NoError(t, err)
			require.True(t, json.Valid(answer), string(answer))
			return
		}
		require.True(t, json.Valid(body))
		require.Equal(t, byte('{'), r.Params[0])
	})
}
