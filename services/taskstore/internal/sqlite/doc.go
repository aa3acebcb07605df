// Package sqlite is the task store's engine for one process and one file.
//
// One connection writes; SQLite allows no more, and a second one would only
// wait. A small pool of connections reads beside it, each query at one snapshot
// of the write-ahead log. A commit returns after fsync (synchronous=FULL).
//
// SQLite is driven through its own API and not database/sql, which reads twice
// as fast; docs/adr/0002-sqlite-driver.md has the figures.
package sqlite
