// Package store is the task store without a network: the rules by which tasks,
// contexts and leases change, over a database engine that knows rows only.
//
// Every write takes a slice and answers for each item. An item is one change:
// it names the rows it needs, decides on them without touching anything else,
// and says what to write. Changes that wait at the same time share a
// transaction (package batch); one that is refused leaves the others alone.
package store
