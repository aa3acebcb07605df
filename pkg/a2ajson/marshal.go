package a2ajson

import (
	"bytes"
	"encoding/json"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

// Marshal writes m as compact ProtoJSON. The result of ListTasks always has its
// four members (A2A §3.1.4), an agent card all that are REQUIRED.
func Marshal(m proto.Message) ([]byte, error) {
	switch m := m.(type) {
	case *a2apb.ListTasksResponse:
		return marshalList(m)
	case *a2apb.AgentCard:
		return marshalCard(m)
	}
	return marshal(m)
}

// marshal takes out the spaces that protojson puts in at random.
func marshal(m proto.Message) ([]byte, error) {
	spaced, err := protojson.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	var out bytes.Buffer
	out.Grow(len(spaced))
	if err := json.Compact(&out, spaced); err != nil {
		return nil, fmt.Errorf("compact %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return out.Bytes(), nil
}

// marshalList writes the envelope by hand: protojson can only print the empty
// members of all messages in it or of none.
func marshalList(list *a2apb.ListTasksResponse) ([]byte, error) {
	var out bytes.Buffer
	out.WriteString(`{"tasks":[`)
	for i, task := range list.GetTasks() {
		if i > 0 {
			out.WriteByte(',')
		}
		text, err := marshal(task)
		if err != nil {
			return nil, err
		}
		out.Write(text)
	}
	token, err := json.Marshal(list.GetNextPageToken())
	if err != nil {
		return nil, fmt.Errorf("encode page token: %w", err)
	}
	fmt.Fprintf(&out, `],"nextPageToken":%s,"pageSize":%d,"totalSize":%d}`,
		token, list.GetPageSize(), list.GetTotalSize())
	return out.Bytes(), nil
}
