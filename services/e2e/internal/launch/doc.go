// Package launch runs an Errand cluster of separate processes on one machine: as
// many of each service as wanted, the Postgres and NATS servers under them, and a
// front that spreads requests over the gateways. Each process may be killed,
// paused, restarted or cut off from the others at any moment.
package launch
