// Protoimage compiles Errand's protocol buffer sources into images that buf
// lints, compares and generates from.
//
// It stands in for buf's own compiler because our sources import the official
// A2A definition, which reaches us as a descriptor inside the Go package of the
// A2A SDK and not as a .proto file. Imports are answered from the descriptors
// linked into this program, so that what we compile against is exactly what our
// programs run with, and no schema registry is needed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"
)

func main() {
	root := flag.String("root", "proto", "folder that the import paths of the sources start from")
	out := flag.String("out", "", "folder to write errand.binpb and a2a.binpb to")
	flag.Parse()
	if err := run(context.Background(), *root, *out); err != nil {
		fmt.Fprintln(os.Stderr, "protoimage:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, out string) error {
	errand, err := compile(ctx, os.DirFS(root))
	if err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o750); err != nil {
		return fmt.Errorf("create the output folder: %w", err)
	}
	if err := write(filepath.Join(out, "errand.binpb"), errand); err != nil {
		return err
	}
	return write(filepath.Join(out, "a2a.binpb"), official())
}

func write(name string, image *descriptorpb.FileDescriptorSet) error {
	data, err := proto.MarshalOptions{Deterministic: true}.Marshal(image)
	if err != nil {
		return fmt.Errorf("encode %s: %w", name, err)
	}
	if err := os.WriteFile(name, data, 0o600); err != nil {
		return fmt.Errorf("write an image: %w", err)
	}
	return nil
}
