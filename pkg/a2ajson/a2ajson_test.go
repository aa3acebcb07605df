package a2ajson_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/a2ajson"
)

var limits = a2ajson.Limits{Depth: 32, Values: 1000}

func TestRefusalsNameTheMember(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, body, field string }{
		{"wrong root", `[]`, "body"},
		{"message is text", `{"message":"hi"}`, "message"},
		{"text is a number", `{"message":{"parts":[{"text":"a"},{"text":5}]}}`, "message.parts[1].text"},
		{"two contents", `{"message":{"parts":[{"text":"a","url":"b"}]}}`, "message.parts[0]"},
		{"parts is an object", `{"message":{"parts":{}}}`, "message.parts"},
		{"null part", `{"message":{"parts":[null]}}`, "message.parts[0]"},
		{"snake case in, JSON name out", `{"message":{"message_id":5}}`, "message.messageId"},
		{"member twice", `{"message":{"role":"ROLE_USER","role":"ROLE_USER"}}`, "message.role"},
		{"member twice under both names", `{"message":{"messageId":"a","message_id":"a"}}`, "message.messageId"},
		{"number as role", `{"message":{"role":1.5}}`, "message.role"},
		{"fraction", `{"configuration":{"historyLength":1.5}}`, "configuration.historyLength"},
		{"too big for 32 bits", `{"configuration":{"historyLength":2147483648}}`, "configuration.historyLength"},
		{"boolean as text", `{"configuration":{"returnImmediately":"true"}}`, "configuration.returnImmediately"},
		{"not base64", `{"message":{"parts":[{"raw":"§"}]}}`, "message.parts[0].raw"},
		{"beyond a double", `{"message":{"parts":[{"data":{"exp":[1,1e400]}}]}}`, "message.parts[0].data.exp[1]"},
		{"lone surrogate", `{"message":{"parts":[{"text":"ok"},{"text":"\ud83d"}]}}`, "message.parts[1].text"},
		{"lone surrogate after a written U+FFFD", `{"message":{"parts":[{"text":"\uFFFD"},{"text":"\ud83d"}]}}`, "message.parts[1].text"},
		{"broken UTF-8", "{\"message\":{\"contextId\":\"a\xff\"}}", "message.contextId"},
		{"metadata is an array", `{"metadata":[]}`, "metadata"},
		{"metadata key twice", `{"metadata":{"a":{"b":1,"b":2}}}`, "metadata.a.b"},
		{"surrogate in metadata key", `{"metadata":{"\udc00":1}}`, "metadata"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			err := a2ajson.Unmarshal([]byte(tc.body), &a2apb.SendMessageRequest{}, limits)
			require.Equal(t, a2aerr.ReasonInvalidParams, reason(err))
			require.Equal(t, tc.field, field(t, err))
		})
	}
}

func TestAWrongTimestampIsNamed(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`"2025-13-01"`, `""`, `5`, `"2025-13-01T00:00:00Z"`, `"0000-01-01T00:00:00Z"`, `"9999-12-31T23:59:59-14:00"`} {
		err := a2ajson.Unmarshal([]byte(`{"statusTimestampAfter":`+value+`}`), &a2apb.ListTasksRequest{}, limits)
		require.Equal(t, "statusTimestampAfter", field(t, err), value)
	}
}

func TestAnUnknownStateIsNoMissingFilter(t *testing.T) {
	t.Parallel()
	err := a2ajson.Unmarshal([]byte(`{"status":"done","pageSize":5}`), &a2apb.ListTasksRequest{}, limits)
	require.Equal(t, "status", field(t, err))
	require.NoError(t, a2ajson.Unmarshal([]byte(`{"pageSize":5,"new":{}}`), &a2apb.ListTasksRequest{}, limits))
}

func TestWhatProtoJSONTakesIsTaken(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"unknown members":  `{"message":{"parts":[{"text":"x","future":{"a":[1]}}],"y":null},"x":true}`,
		"null is unset":    `{"message":null,"configuration":null,"metadata":null}`,
		"number as text":   `{"configuration":{"historyLength":"2"}}`,
		"whole exponent":   `{"configuration":{"historyLength":1e1}}`,
		"number of enum":   `{"message":{"role":1}}`,
		"data null":        `{"message":{"parts":[{"data":null}]}}`,
		"URL-safe base64":  `{"message":{"parts":[{"raw":"-_-_"}]}}`,
		"unpadded base64":  `{"message":{"parts":[{"raw":"AA"}]}}`,
		"NUL":              `{"message":{"parts":[{"text":"a\u0000b"}]}}`,
		"surrogate pair":   `{"message":{"parts":[{"text":"\ud83d\ude00"}]}}`,
		"brackets in text": `{"message":{"parts":[{"text":"` + strings.Repeat(`[{\"`, 100) + `"}]}}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, a2ajson.Unmarshal([]byte(body), &a2apb.SendMessageRequest{}, limits))
		})
	}
}

func TestBrokenJSONIsAParseError(t *testing.T) {
	t.Parallel()
	for _, body := range []string{``, ` `, `{`, `{"message":{"x":`, `{"":}`, `{} xyz`, `{"a":1}{}`, `{"a":01}`, `{'a':1}`, "{\"a\":\"\x01\"}"} {
		err := a2ajson.Unmarshal([]byte(body), &a2apb.SendMessageRequest{}, limits)
		require.Equal(t, a2aerr.ReasonParseError, reason(err), "%q", body)
	}
}

func TestEndlessNestingIsRefusedAtOnce(t *testing.T) {
	t.Parallel()
	begin := time.Now()
	for name, body := range map[string]string{
		"unknown member": `{"x":` + strings.Repeat("[", 100_000),
		"closed":         `{"x":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"data":           `{"message":{"parts":[{"data":` + strings.Repeat(`{"a":`, 20_000) + `1` + strings.Repeat(`}`, 20_000) + `}]}}`,
		"many keys":      `{"metadata":{"k":1` + strings.Repeat(`,"k":1`, 1_000_000) + `}}`,
	} {
		err := a2ajson.Unmarshal([]byte(body), &a2apb.SendMessageRequest{}, limits)
		require.Equal(t, a2aerr.ReasonInvalidParams, reason(err), name)
	}
	require.Less(t, time.Since(begin), 400*time.Millisecond)
}

func TestLongKeysDoNotMakeARefusalExpensive(t *testing.T) {
	t.Parallel()
	many := a2ajson.Limits{Depth: 32, Values: 100_000}
	begin := time.Now()
	body := `{"metadata":{"` + strings.Repeat("k", 1_000_000) + `":[0` + strings.Repeat(",0", 90_000) + `,1e400]}}`
	err := a2ajson.Unmarshal([]byte(body), &a2apb.SendMessageRequest{}, many)
	require.Less(t, len(field(t, err)), 500)
	require.Less(t, time.Since(begin), 2*time.Second)
}

func TestAcceptedDepthCanBeReadAgain(t *testing.T) {
	t.Parallel()
	deep := a2ajson.Limits{Depth: 100, Values: 1000}
	nested := strings.Repeat(`[`, 96) + strings.Repeat(`]`, 96)
	var m, again a2apb.SendMessageRequest
	require.NoError(t, a2ajson.Unmarshal([]byte(`{"message":{"parts":[{"data":`+nested+`}]}}`), &m, deep))
	text, err := a2ajson.Marshal(&m)
	require.NoError(t, err)
	require.NoError(t, a2ajson.Unmarshal(text, &again, deep))
	wire, err := proto.Marshal(&m)
	require.NoError(t, err)
	require.NoError(t, proto.Unmarshal(wire, &again))
	require.True(t, proto.Equal(&m, &again))
}

func TestWholeNumbersPrintWithoutAFraction(t *testing.T) {
	t.Parallel()
	var part a2apb.Part
	require.NoError(t, a2ajson.Unmarshal([]byte(`{"data":{"rev":3}}`), &part, limits))
	text, err := a2ajson.Marshal(&part)
	require.NoError(t, err)
	require.Equal(t, `{"data":{"rev":3}}`, string(text))
}

func TestListsPrintTheirFourMembers(t *testing.T) {
	t.Parallel()
	text, err := a2ajson.Marshal(&a2apb.ListTasksResponse{PageSize: 50})
	require.NoError(t, err)
	require.Equal(t, `{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":0}`, string(text))

	task := func(id string) *a2apb.Task {
		return &a2apb.Task{Id: id, Status: &a2apb.TaskStatus{State: a2apb.TaskState_TASK_STATE_WORKING}}
	}
	text, err = a2ajson.Marshal(&a2apb.ListTasksResponse{
		Tasks: []*a2apb.Task{task("a"), task("b")}, NextPageToken: `x"y`, PageSize: 2, TotalSize: 7,
	})
	require.NoError(t, err)
	require.Equal(t, `{"tasks":[{"id":"a","status":{"state":"TASK_STATE_WORKING"}},{"id":"b","status":{"state":"TASK_STATE_WORKING"}}],`+
		`"nextPageToken":"x\"y","pageSize":2,"totalSize":7}`, string(text))
}

func TestCardsPrintRequiredMembersOnly(t *testing.T) {
	t.Parallel()
	text, err := a2ajson.Marshal(&a2apb.AgentCard{
		Name:                "a",
		SupportedInterfaces: []*a2apb.AgentInterface{{Url: "https://x.test/rpc?a&b"}},
		Capabilities:        &a2apb.AgentCapabilities{},
		SecuritySchemes: map[string]*a2apb.SecurityScheme{"k": {Scheme: &a2apb.SecurityScheme_ApiKeySecurityScheme{
			ApiKeySecurityScheme: &a2apb.APIKeySecurityScheme{Location: "header"}}}},
		Skills: []*a2apb.AgentSkill{{Id: "s"}},
	})
	require.NoError(t, err)
	require.JSONEq(t, `{"name":"a","description":"","version":"","capabilities":{},
		"supportedInterfaces":[{"url":"https://x.test/rpc?a&b","protocolBinding":"","protocolVersion":""}],
		"securitySchemes":{"k":{"apiKeySecurityScheme":{"location":"header","name":""}}},
		"defaultInputModes":[],"defaultOutputModes":[],
		"skills":[{"id":"s","name":"","description":"","tags":[]}]}`, string(text))
	require.Contains(t, string(text), "?a&b", "no HTML escapes")
	require.False(t, bytes.ContainsAny(text, " \n"))
}

func TestWhatHasNoJSONFormIsAnError(t *testing.T) {
	t.Parallel()
	for _, part := range []*a2apb.Part{
		{Content: &a2apb.Part_Data{Data: &structpb.Value{}}},
		{Content: &a2apb.Part_Text{Text: "\xff"}},
	} {
		_, err := a2ajson.Marshal(part)
		require.Error(t, err)
	}
}

func FuzzUnmarshal(f *testing.F) {
	for _, seed := range []string{
		`{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"a","metadata":{"k":[1,null,"x"]}}]}}`,
		`{"message":{"parts":[{"data":1e400}]}}`, `{"":}`, `{"message":{"x":`, `{"configuration":{"historyLength":"2"}}`,
		`{"message":{"parts":[{"raw":"AA"},{"url":"u"},{"data":{}}]},"metadata":{"a":"\ud83d"}}`, `null`, `[[[[`, "\"\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var m, again a2apb.SendMessageRequest
		if err := a2ajson.Unmarshal(body, &m, limits); err != nil {
			require.Contains(t, []string{a2aerr.ReasonParseError, a2aerr.ReasonInvalidParams}, reason(err))
			return
		}
		text, err := a2ajson.Marshal(&m)
		require.NoError(t, err)
		require.True(t, json.Valid(text))
		require.NoError(t, a2ajson.Unmarshal(text, &again, limits))
		require.True(t, proto.Equal(&m, &again))
	})
}

func reason(err error) string {
	if e := a2aerr.From(err); e != nil {
		return e.Reason
	}
	return ""
}

func field(t *testing.T, err error) string {
	t.Helper()
	require.Error(t, err)
	for _, d := range a2aerr.From(err).Details {
		if bad, ok := d.(*errdetails.BadRequest); ok {
			return bad.GetFieldViolations()[0].GetField()
		}
	}
	t.Fatal("no BadRequest")
	return ""
}
