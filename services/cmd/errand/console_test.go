package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/client"
)

func TestTerminalShowsWhatIsGoingOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out, err bytes.Buffer
		c := newConsole(strings.NewReader(""), &out, &err)
		c.errTerminal = true
		stop := c.watching(t.Context())
		c.doing("working")
		<-time.After(2500 * time.Millisecond)
		synctest.Wait()
		require.Equal(t, eraseLine+"working 1s"+eraseLine+"working 2s", err.String())
		c.notef("a note")
		require.True(t, strings.HasSuffix(err.String(), "working 2s"+eraseLine+"a note\n"))
		stop()
		require.Empty(t, out.String())
	})
}

func TestNothingIsRedrawnWithoutATerminal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var out, err bytes.Buffer
		c := newConsole(strings.NewReader(""), &out, &err)
		stop := c.watching(t.Context())
		c.doing("working")
		<-time.After(time.Minute)
		stop()
		require.Empty(t, out.String()+err.String())
	})
}

func TestTerminalLineDoesNotCutIntoTheResult(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var both bytes.Buffer
		c := newConsole(strings.NewReader(""), &both, &both)
		c.errTerminal = true
		stop := c.watching(t.Context())
		c.doing("working")
		c.print("half a ")
		<-time.After(1500 * time.Millisecond)
		c.print("line")
		c.notef("a note")
		stop()
		require.Equal(t, "half a line\na note\n", both.String())
	})
}

func update(event *a2apb.StreamResponse, artifacts ...*a2apb.Artifact) *client.Update {
	return &client.Update{Event: event, Task: &a2apb.Task{Id: "t", Artifacts: artifacts}}
}

func artifact(id string, texts ...string) *a2apb.Artifact {
	a := &a2apb.Artifact{ArtifactId: id}
	for _, text := range texts {
		a.Parts = append(a.Parts, client.Text(text))
	}
	return a
}

func chunk(appended bool, id string) *a2apb.StreamResponse {
	return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_ArtifactUpdate{
		ArtifactUpdate: &a2apb.TaskArtifactUpdateEvent{Append: appended, Artifact: &a2apb.Artifact{ArtifactId: id}},
	}}
}

func snapshot() *a2apb.StreamResponse {
	return &a2apb.StreamResponse{Payload: &a2apb.StreamResponse_Task{}}
}

func TestTranscriptPrintsEachPartOnce(t *testing.T) {
	t.Parallel()
	var out, err bytes.Buffer
	transcript := newTranscript(newConsole(strings.NewReader(""), &out, &err))
	transcript.update(update(chunk(false, "a"), artifact("a", "one ")))
	transcript.update(update(chunk(true, "a"), artifact("a", "one ", "two ")))
	transcript.update(update(snapshot(), artifact("a", "one ", "two ", "three")))
	transcript.update(update(chunk(false, "b"), artifact("a", "one ", "two ", "three"), artifact("b", "B")))
	transcript.update(update(chunk(false, "a"), artifact("a", "again"), artifact("b", "B")))
	transcript.update(update(snapshot(), artifact("a", "again"), artifact("b", "B")))
	require.Equal(t, "one two three\nB\nagain", out.String())
	require.Equal(t, "the agent replaces a\n", err.String())
}

func TestPartsOfAnyKindArePrinted(t *testing.T) {
	t.Parallel()
	data, err := client.Data(map[string]any{"key": "value"})
	require.NoError(t, err)
	var out bytes.Buffer
	c := newConsole(strings.NewReader(""), &out, &bytes.Buffer{})
	c.parts([]*a2apb.Part{
		client.Text("text"), data, client.File("a.csv", "text/csv", []byte("x,y")),
		client.File("a.bin", "application/octet-stream", []byte{0, 1}),
		{Content: &a2apb.Part_Url{Url: "https://example.com/output.txt"}},
	})
	require.Equal(t, "text\n{\"key\":\"value\"}\nx,y\n"+
		"[a.bin, application/octet-stream, 2 bytes; --output json has them]\nhttps://example.com/output.txt\n", out.String())
}
