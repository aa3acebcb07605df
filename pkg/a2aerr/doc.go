// Package a2aerr is the one table of the errors that a sender may see, with
// their form on each binding: gRPC status, HTTP status with a google.rpc.Status
// body, JSON-RPC error object (A2A §5.4, §9.5, §10.6, §11.6).
//
// The constructors return gRPC status errors, so an error that a service
// behind the gateway returns reaches the sender unchanged. [From] turns any
// error into its public form; what it does not know becomes an internal error
// that shows nothing but an id, and keeps its cause for the log line.
package a2aerr
