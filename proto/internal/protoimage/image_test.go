package main

import (
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

func source(text string) fstest.MapFS {
	return fstest.MapFS{"errand/x/v1/x.proto": {Data: []byte("syntax = \"proto3\";\npackage errand.x.v1;\n" + text)}}
}

func TestImportsOfTheOfficialDefinitionAreAnsweredAndMarked(t *testing.T) {
	t.Parallel()
	set, err := compile(t.Context(), source(`
import "a2av1.proto";
// Holder says what it holds.
message Holder { lf.a2a.v1.Task task = 1; }`))
	require.NoError(t, err)

	last := set.GetFile()[len(set.GetFile())-1]
	require.Equal(t, "errand/x/v1/x.proto", last.GetName())
	require.NotEmpty(t, last.GetSourceCodeInfo().GetLocation())
	require.Empty(t, last.ProtoReflect().GetUnknown())

	names := map[string]bool{}
	for _, file := range set.GetFile() {
		for _, imported := range file.GetDependency() {
			require.True(t, names[imported], "%s comes before its import %s", file.GetName(), imported)
		}
		names[file.GetName()] = true
		if file != last {
			number, _, _ := protowire.ConsumeTag(file.ProtoReflect().GetUnknown())
			require.EqualValues(t, bufExtension, number, file.GetName())
		}
	}
	require.True(t, names["a2av1.proto"])
	require.True(t, names["google/api/annotations.proto"])
}

func TestProblemsInTheSourcesAreErrors(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"unused import":  `import "a2av1.proto"; message M {}`,
		"unknown import": `import "nowhere.proto"; message M {}`,
		"unknown type":   `message M { Missing m = 1; }`,
		"syntax":         `message {`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := compile(t.Context(), source(text))
			require.Error(t, err)
		})
	}
	_, err := compile(t.Context(), fstest.MapFS{"errand/readme.txt": {}})
	require.ErrorContains(t, err, "no .proto file")
}

func TestBothImagesAreWritten(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "images")
	require.NoError(t, run(t.Context(), "../..", out))
	for image, want := range map[string]string{"errand.binpb": "errand/event/v1/event.proto", "a2a.binpb": "a2av1.proto"} {
		data, err := os.ReadFile(filepath.Join(out, image))
		require.NoError(t, err)
		set := &descriptorpb.FileDescriptorSet{}
		require.NoError(t, proto.Unmarshal(data, set))
		var names []string
		for _, file := range set.GetFile() {
			names = append(names, file.GetName())
		}
		require.Contains(t, names, want)
	}
}
