package task_test

import (
	"encoding/hex"
	"math"
	"testing"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/pkg/task"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func parse(t *testing.T, json string) *a2apb.Message {
	t.Helper()
	m := &a2apb.Message{}
	require.NoError(t, protojson.Unmarshal([]byte(json), m))
	return m
}

func TestFingerprintIsStable(t *testing.T) {
	t.Parallel()
	m := parse(t, `{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"echo"}],"metadata":{"b":[1,null,"x"],"a":{"k":true}}}`)
	// Stored keys are compared with it after an upgrade: it must never change.
	require.Equal(t, "8e149151aa7ac9e7562d8b8eb93e685422c526079b0d4b5d106ebe0cc80854b2", hex.EncodeToString(task.Fingerprint(m)))
}

func TestFingerprintIgnoresHowAMessageWasWritten(t *testing.T) {
	t.Parallel()
	a := parse(t, `{"messageId":"m1","role":"ROLE_USER","parts":[{"data":{"x":1,"y":-0}}],"metadata":{"a":1,"b":2}}`)
	b := parse(t, `{"metadata":{"b":2.0,"a":1e0},"parts":[{"data":{"y":0,"x":1}}],"role":1,"message_id":"m1"}`)
	require.Equal(t, task.Fingerprint(a), task.Fingerprint(b))

	wire, err := proto.Marshal(a)
	require.NoError(t, err)
	again := &a2apb.Message{}
	require.NoError(t, proto.Unmarshal(wire, again))
	require.Equal(t, task.Fingerprint(a), task.Fingerprint(again))
	require.Len(t, task.Fingerprint(a), 32)
}

func TestFingerprintTellsMessagesApart(t *testing.T) {
	t.Parallel()
	variants := []string{
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"a"},{"text":"b"}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"url":"ab"}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"raw":"YWI="}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"data":"ab"}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"data":null}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"data":false}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"data":0}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"data":[]}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab","filename":"f"}]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}],"taskId":"t"}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}],"contextId":"t"}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}],"metadata":{}}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}],"metadata":{"a":"b"}}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}],"referenceTaskIds":["a","b"]}`,
		`{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"ab"}],"referenceTaskIds":["b","a"]}`,
	}
	seen := map[string]string{}
	for _, v := range variants {
		f := string(task.Fingerprint(parse(t, v)))
		require.Empty(t, seen[f], "%s has the fingerprint of another", v)
		seen[f] = v
	}
}

func TestFingerprintTakesAnyNumber(t *testing.T) {
	t.Parallel()
	require.Len(t, task.Fingerprint(&a2apb.Message{Role: math.MaxInt32}), 32)
	require.Len(t, task.Fingerprint(nil), 32)
}
