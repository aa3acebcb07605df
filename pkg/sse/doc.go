// Package sse writes and reads server-sent events (WHATWG HTML, "Server-sent
// events") as A2A uses them: one data line per event, ids that grow, comments
// that keep the connection alive.
package sse
