package main

import (
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// Field numbers of buf's image format, which extends FileDescriptorProto
// (buf.alpha.image.v1.ImageFileExtension).
const (
	bufExtension = 8042
	isImport     = 1
)

// image orders the files so that each comes after what it imports, and marks the
// files that are only imported: buf neither lints those nor generates for them.
func image(files []protoreflect.FileDescriptor) *descriptorpb.FileDescriptorSet {
	set := &descriptorpb.FileDescriptorSet{}
	own := make(map[string]bool, len(files))
	for _, file := range files {
		own[file.Path()] = true
	}
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(file protoreflect.FileDescriptor) {
		if seen[file.Path()] {
			return
		}
		seen[file.Path()] = true
		for i := range file.Imports().Len() {
			add(file.Imports().Get(i))
		}
		set.File = append(set.File, describe(file, own[file.Path()]))
	}
	for _, file := range files {
		add(file)
	}
	return set
}

func describe(file protoreflect.FileDescriptor, own bool) *descriptorpb.FileDescriptorProto {
	described := protodesc.ToFileDescriptorProto(file)
	if !own {
		mark := protowire.AppendTag(nil, isImport, protowire.VarintType)
		mark = protowire.AppendVarint(mark, protowire.EncodeBool(true))
		unknown := protowire.AppendTag(nil, bufExtension, protowire.BytesType)
		described.ProtoReflect().SetUnknown(protowire.AppendBytes(unknown, mark))
	}
	return described
}
