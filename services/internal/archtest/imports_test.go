package archtest

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImportsRunFromServicesOverPkgToProto(t *testing.T) {
	t.Parallel()
	for path, p := range workspace(t) {
		for _, imported := range p.allImports() {
			if under(path, root+"proto") {
				assert.False(t, under(imported, root+"pkg", root+"services"), "%s imports %s", path, imported)
			}
			if under(path, root+"pkg") {
				assert.False(t, under(imported, root+"services"), "%s imports %s", path, imported)
			}
		}
	}
}

func TestServicesMeetOverTheWireOnly(t *testing.T) {
	t.Parallel()
	services := []string{root + "services/gateway", root + "services/taskstore", root + "services/executor", root + "services/notifier"}
	for path, p := range workspace(t) {
		for _, service := range services {
			if !under(path, service) {
				continue
			}
			for _, imported := range p.Imports {
				assert.False(t, under(imported, services...) && !under(imported, service), "%s imports %s", path, imported)
			}
		}
	}
}

// The rules of tasks must be readable and testable without any technology. The
// generated A2A types link gRPC, which is why only our own imports count.
func TestTaskRulesKnowNoTechnology(t *testing.T) {
	t.Parallel()
	packages := workspace(t)
	rules := root + "pkg/task"
	require.NotEmpty(t, packages[rules].GoFiles)
	for _, imported := range reach(packages, rules) {
		assert.False(t, under(imported,
			"google.golang.org/grpc", "github.com/nats-io", "github.com/jackc", "database/sql", "net/http", "os",
		), "%s reaches %s", rules, imported)
	}
}

// A library of agent authors and senders must not pull in how the cluster runs.
func TestTheSDKsKnowNeitherDatabaseNorQueue(t *testing.T) {
	t.Parallel()
	packages := workspace(t)
	for _, sdk := range []string{root + "pkg/agent", root + "pkg/client"} {
		require.NotEmpty(t, packages[sdk].GoFiles, sdk)
		for _, imported := range reach(packages, sdk) {
			assert.False(t, under(imported, "github.com/nats-io", "github.com/jackc", "database/sql"), "%s reaches %s", sdk, imported)
		}
	}
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	for path, p := range workspace(t) {
		generated := under(path, root+"proto/gen")
		onlyTests := len(p.GoFiles) == 0
		assert.True(t, p.Doc != "" || generated || onlyTests, "%s has no package comment", path)
	}
}
