// Package archtest holds the rules about who may import whom, as tests. They
// look at every package of the workspace, so a new one is held to them without
// being named here.
//
// The go command does not see what these tests read, and may show an old result
// of theirs from its cache; `make lint` runs them without it.
package archtest
