// Package harness runs whole Errand clusters for tests: all services in the
// test's own process, or the errand binary as a child that a test may kill.
package harness
