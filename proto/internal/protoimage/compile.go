package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"

	"github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/reporter"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
)

// official is the image of the official A2A definition.
func official() *descriptorpb.FileDescriptorSet {
	return image([]protoreflect.FileDescriptor{a2apb.File_a2av1_proto})
}

// folder holds our sources, below the root of their import paths.
const folder = "errand"

// compile makes one image of all our sources. Warnings, such as an import that is
// not used, fail too.
func compile(ctx context.Context, source fs.FS) (*descriptorpb.FileDescriptorSet, error) {
	names, err := sources(source)
	if err != nil {
		return nil, err
	}
	var problems []error
	compiler := protocompile.Compiler{
		Resolver:       resolver(source),
		SourceInfoMode: protocompile.SourceInfoStandard,
		Reporter: reporter.NewReporter(
			func(err reporter.ErrorWithPos) error { problems = append(problems, err); return nil },
			func(err reporter.ErrorWithPos) { problems = append(problems, err) },
		),
	}
	compiled, err := compiler.Compile(ctx, names...)
	if len(problems) > 0 {
		return nil, errors.Join(problems...)
	}
	if err != nil {
		return nil, fmt.Errorf("compile %s: %w", folder, err)
	}
	files := make([]protoreflect.FileDescriptor, len(compiled))
	for i, file := range compiled {
		files[i] = file
	}
	return image(files), nil
}

func sources(source fs.FS) ([]string, error) {
	var names []string
	err := fs.WalkDir(source, folder, func(name string, _ fs.DirEntry, err error) error {
		if err == nil && path.Ext(name) == ".proto" {
			names = append(names, name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find the sources: %w", err)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("find the sources: no .proto file under %s", folder)
	}
	slices.Sort(names)
	return names, nil
}

// resolver answers from the linked-in descriptors first, then from the sources.
func resolver(source fs.FS) protocompile.Resolver {
	return protocompile.CompositeResolver{
		protocompile.ResolverFunc(func(name string) (protocompile.SearchResult, error) {
			file, err := protoregistry.GlobalFiles.FindFileByPath(name)
			return protocompile.SearchResult{Desc: file}, err
		}),
		&protocompile.SourceResolver{Accessor: func(name string) (io.ReadCloser, error) {
			return source.Open(name)
		}},
	}
}
