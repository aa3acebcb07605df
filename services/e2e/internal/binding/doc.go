// Package binding calls an A2A agent over each of the three bindings in one and
// the same way, and shows what came back as it was on the wire. It is written
// from the specification alone and shares no code with the servers that it
// tests.
package binding
