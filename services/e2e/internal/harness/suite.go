package harness

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
)

// Suite is the testing.TB of what outlives single tests: a cluster that all
// tests of a package share. Its cleanups run after the last test. A failure of
// it ends the tests by a panic, since there is no test to fail.
type Suite struct {
	testing.TB // what is not said below has no meaning here and panics

	mu       sync.Mutex
	cleanups []func()
}

// NewSuite makes a suite for a TestMain.
func NewSuite() *Suite { return &Suite{} }

// Around is m and the suite's cleanups after it, for goleak.VerifyTestMain.
func (s *Suite) Around(m *testing.M) interface{ Run() int } { return around{s, m} }

type around struct {
	suite *Suite
	m     *testing.M
}

func (a around) Run() int {
	defer a.suite.end()
	return a.m.Run()
}

func (s *Suite) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cleanup := range slices.Backward(s.cleanups) {
		cleanup()
	}
}

// Cleanup runs f after the last test.
func (s *Suite) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cleanups = append(s.cleanups, f)
}

// TempDir is a folder that is removed after the last test.
func (s *Suite) TempDir() string {
	dir, err := os.MkdirTemp("", "errand-e2e-")
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Helper does nothing: a panic shows its callers anyway.
func (*Suite) Helper() {}

// Name is what databases and connections of the suite are called after.
func (*Suite) Name() string { return "suite" }

// Context lasts as long as the process.
func (*Suite) Context() context.Context { return context.Background() }

// Output is where lines that belong to no test go.
func (*Suite) Output() io.Writer { return os.Stderr }

// Errorf ends the tests; require calls it before FailNow.
func (*Suite) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// Fatal ends the tests.
func (*Suite) Fatal(args ...any) { panic(fmt.Sprint(args...)) }

// Fatalf ends the tests.
func (*Suite) Fatalf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }

// FailNow ends the tests.
func (*Suite) FailNow() { panic("the suite failed") }
