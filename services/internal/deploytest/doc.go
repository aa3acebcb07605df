// Package deploytest holds tests that read the files under deploy/ as the
// programs do that they are meant for.
package deploytest
