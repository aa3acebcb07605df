// Package postgres keeps the task store's rows in Postgres 14 or newer.
//
// An update is two round trips. The first carries BEGIN, the reservations, the
// locks in key order and the probes; the second carries every write and COMMIT.
// Since COMMIT is sent before the results of the writes are known, a guarded
// statement counts its rows on the server and fails the transaction itself. A
// read is one round trip: a read-only snapshot.
//
//	begin_update  reserve_dedupe  lock_tasks  lock_leases  load_artifacts ─▶
//	                                                          ◀─ rows
//	                            decide
//	update_tasks  insert_messages  insert_events  …  commit ──────────────▶
//	                                                          ◀─ done
//
// Nothing depends on a session: no advisory locks, no LISTEN, no settings that
// outlive a transaction. Behind a pooler in transaction mode that does not track
// prepared statements, the URL needs default_query_exec_mode=cache_describe, which
// plans each statement anew: small transactions then cost twice as much.
//
// Statements are in sql/, one name each; the schema is in migrations/.
package postgres
