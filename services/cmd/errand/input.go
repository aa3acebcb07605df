package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/client"
)

// message is what send and stream say.
type message struct {
	Text []string `arg:"" optional:"" help:"Text; - reads it from standard input, as does a pipe when nothing else is given."`

	File      []string `short:"f" help:"File to send; may be repeated." placeholder:"PATH" sep:"none"`
	Data      []string `short:"d" help:"Structured data to send; @PATH reads it from a file; may be repeated." placeholder:"JSON" sep:"none"`
	Task      string   `help:"Task that the message continues." placeholder:"ID"`
	Context   string   `help:"Context that a new task belongs to." placeholder:"ID"`
	MessageID string   `name:"message-id" help:"Id of the message. Sending again under the same id changes nothing." placeholder:"ID"`
	Reference []string `help:"Task that the message refers to; may be repeated." placeholder:"ID" sep:"none"`
	History   *int32   `help:"Number of messages to show of the task's history; all if not given." placeholder:"N"`
}

func (m *message) request(c *console) (*a2apb.SendMessageRequest, error) {
	parts, err := m.parts(c)
	if err != nil {
		return nil, err
	}
	sent := client.NewMessage(parts...)
	if m.MessageID != "" {
		sent.MessageId = m.MessageID
	}
	sent.TaskId, sent.ContextId, sent.ReferenceTaskIds = m.Task, m.Context, m.Reference
	return &a2apb.SendMessageRequest{
		Message:       sent,
		Configuration: &a2apb.SendMessageConfiguration{HistoryLength: m.History},
	}, nil
}

func (m *message) parts(c *console) (parts []*a2apb.Part, err error) {
	text := strings.Join(m.Text, " ")
	if text == "-" || text == "" && len(m.File)+len(m.Data) == 0 && !c.inTerminal {
		read, err := io.ReadAll(c.in)
		if err != nil {
			return nil, fmt.Errorf("read standard input: %w", err)
		}
		text = strings.TrimSuffix(string(read), "\n")
	}
	if !utf8.ValidString(text) {
		return nil, errors.New("the text is not UTF-8: send it with --file")
	}
	if text != "" {
		parts = append(parts, client.Text(text))
	}
	for _, path := range m.File {
		part, err := filePart(path)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	for _, data := range m.Data {
		part, err := dataPart(data)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errors.New("nothing to send: give a text, --file or --data")
	}
	return parts, nil
}

func filePart(path string) (*a2apb.Part, error) {
	content, err := os.ReadFile(path) //nolint:gosec // the user's own choice
	if err != nil {
		return nil, fmt.Errorf("read file: %w", err)
	}
	mediaType := mime.TypeByExtension(filepath.Ext(path))
	if mediaType == "" {
		mediaType = http.DetectContentType(content)
	}
	return client.File(filepath.Base(path), mediaType, content), nil
}

func dataPart(data string) (*a2apb.Part, error) {
	text := []byte(data)
	if path, ok := strings.CutPrefix(data, "@"); ok {
		var err error
		if text, err = os.ReadFile(path); err != nil { //nolint:gosec // the user's own choice
			return nil, fmt.Errorf("read data: %w", err)
		}
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		return nil, fmt.Errorf("data is not JSON: %w", err)
	}
	return client.Data(value)
}
