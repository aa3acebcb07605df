// Package task holds the rules of A2A tasks: which state may follow which, how
// events build a task, when two messages are the same, and what ids and page
// tokens look like. It is pure: it knows neither storage nor transport.
package task
