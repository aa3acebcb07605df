package archtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const root = "github.com/errandhq/errand/"

// pkg is what `go list -json` says of a package.
type pkg struct {
	ImportPath   string
	Doc          string
	GoFiles      []string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Module       *struct{ Main bool }
}

// allImports are the imports of the package and of its tests.
func (p pkg) allImports() []string {
	return slices.Concat(p.Imports, p.TestImports, p.XTestImports)
}

// workspace lists the packages of all modules of the workspace by import path.
func workspace(t *testing.T) map[string]pkg {
	t.Helper()
	folder := filepath.Dir(strings.TrimSpace(goTool(t, ".", "env", "GOWORK")))
	modules := strings.Fields(goTool(t, folder, "list", "-m", "-f", "{{.Dir}}/..."))
	args := append([]string{"list", "-e", "-deps", "-json=ImportPath,Doc,GoFiles,Imports,TestImports,XTestImports,Module"}, modules...)
	listed := json.NewDecoder(strings.NewReader(goTool(t, folder, args...)))
	packages := map[string]pkg{}
	for {
		var p pkg
		err := listed.Decode(&p)
		if errors.Is(err, io.EOF) {
			return packages
		}
		require.NoError(t, err)
		if p.Module != nil && p.Module.Main {
			packages[p.ImportPath] = p
		}
	}
}

func goTool(t *testing.T, folder string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = folder
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", strings.Join(args, " "), stderr.String())
	return string(out)
}

// reach follows the imports of a package through packages of the workspace, and
// gives all that it meets, foreign packages too, but not what those import.
func reach(packages map[string]pkg, path string) []string {
	met := map[string]bool{}
	var follow func(string)
	follow = func(path string) {
		for _, imported := range packages[path].Imports {
			if !met[imported] {
				met[imported] = true
				follow(imported)
			}
		}
	}
	follow(path)
	return slices.Sorted(maps.Keys(met))
}

func under(path string, folders ...string) bool {
	return slices.ContainsFunc(folders, func(folder string) bool {
		return path == folder || strings.HasPrefix(path, folder+"/")
	})
}
