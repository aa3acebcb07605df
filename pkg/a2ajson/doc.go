// Package a2ajson is the one place where A2A messages become JSON and JSON
// becomes A2A messages: ProtoJSON with the additions of A2A §5.
//
// [Unmarshal] ignores unknown members, bounds depth and number of values before
// it parses, and names the member that is wrong. [Marshal] writes compact JSON
// and prints the members that must be there even when they are empty.
package a2ajson
