package client

import (
	"net/http"
	"net/url"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// operation is one of A2A's, in the words of all bindings (A2A §5.3).
type operation struct {
	// The method of gRPC and of JSON-RPC.
	method string
	// The verb and path of HTTP+JSON, below the interface's URL.
	verb string
	path func(proto.Message) string
	// Whether the request is the body; otherwise its fields are the query.
	body bool
}

var (
	opSend         = operation{"SendMessage", http.MethodPost, fixed("/message:send"), true}
	opStream       = operation{"SendStreamingMessage", http.MethodPost, fixed("/message:stream"), true}
	opGet          = operation{"GetTask", http.MethodGet, ofTask(""), false}
	opList         = operation{"ListTasks", http.MethodGet, fixed("/tasks"), false}
	opCancel       = operation{"CancelTask", http.MethodPost, ofTask(":cancel"), true}
	opSubscribe    = operation{"SubscribeToTask", http.MethodPost, ofTask(":subscribe"), false}
	opExtendedCard = operation{"GetExtendedAgentCard", http.MethodGet, fixed("/extendedAgentCard"), false}
)

func fixed(path string) func(proto.Message) string {
	return func(proto.Message) string { return path }
}

func ofTask(verb string) func(proto.Message) string {
	return func(request proto.Message) string {
		id := ""
		switch r := request.(type) {
		case *a2apb.GetTaskRequest:
			id = r.GetId()
		case *a2apb.CancelTaskRequest:
			id = r.GetId()
		case *a2apb.SubscribeToTaskRequest:
			id = r.GetId()
		}
		return "/tasks/" + escape(id) + verb
	}
}

// escape makes one path segment of an id; a colon would read as a verb.
func escape(id string) string {
	return strings.ReplaceAll(url.PathEscape(id), ":", "%3A")
}

func stringValue(s string) protoreflect.Value { return protoreflect.ValueOfString(s) }
