package agent

import (
	"math"
	"testing"
	"unicode/utf8"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestClean(t *testing.T) {
	t.Parallel()
	const half = "\xed\xa0\xbd" // the first half of a surrogate pair
	metadata := &structpb.Struct{Fields: map[string]*structpb.Value{
		"\x00":     structpb.NewStringValue("nul stays"),
		"k" + half: structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewStringValue("v\xff")}}),
		"nan":      structpb.NewNumberValue(math.NaN()),
		"inf":      structpb.NewNumberValue(math.Inf(-1)),
		"none":     {},
	}}
	a := &a2apb.Artifact{
		Name: "cut \xf0\x9f\x98", Extensions: []string{"ok", half}, Metadata: metadata,
		Parts: []*a2apb.Part{Text("😀\x01 is whole"), Text("half " + half + "!")},
	}
	clean(a.ProtoReflect())

	require.Equal(t, "cut \uFFFD", a.GetName())
	require.Equal(t, []string{"ok", "\uFFFD"}, a.GetExtensions())
	require.Equal(t, "😀\x01 is whole", a.GetParts()[0].GetText())
	require.Equal(t, "half \uFFFD!", a.GetParts()[1].GetText())
	require.Equal(t, map[string]any{
		"\x00": "nul stays", "k\uFFFD": []any{"v\uFFFD"}, "nan": "NaN", "inf": "-Inf", "none": nil,
	}, a.GetMetadata().AsMap())
}

func FuzzClean(f *testing.F) {
	f.Add("ok", "\xed\xa0\xbd", 1.5)
	f.Add("\xff", "\x00", math.Inf(1))
	f.Fuzz(func(t *testing.T, text, key string, number float64) {
		a := &a2apb.Artifact{
			ArtifactId: text, Parts: []*a2apb.Part{Text(text)},
			Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{key: structpb.NewNumberValue(number)}},
		}
		whole := proto.CloneOf(a)
		clean(a.ProtoReflect())
		_, err := proto.Marshal(a)
		require.NoError(t, err)
		_, err = protojson.Marshal(a)
		require.NoError(t, err)
		if utf8.ValidString(text) {
			require.Equal(t, whole.GetArtifactId(), a.GetArtifactId())
		}
	})
}
