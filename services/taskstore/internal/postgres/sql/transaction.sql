-- name: begin_update
BEGIN ISOLATION LEVEL READ COMMITTED;

-- name: begin_snapshot
BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;

-- name: commit
COMMIT;

-- name: rollback
ROLLBACK;

-- name: guard
-- Valid until the transaction ends, as a pooler demands. A plan made while a
-- table was small and kept by the connection would read the whole table long
-- after it has grown, hence no sequential scans. A process that is stopped
-- between the two halves of an update must not keep its rows locked.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('jit', 'off', true),
    set_config('statement_timeout', @statement_timeout, true),
    set_config('lock_timeout', @lock_timeout, true),
    set_config('idle_in_transaction_session_timeout', @idle_timeout, true);

-- name: steady_plan
-- What is switched off costs a plan that can't do without it so much that it
-- would be compiled: hence no JIT. Nobody waits for a statement any longer than
-- the program does.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('jit', 'off', true),
    set_config('statement_timeout', @statement_timeout, true),
    set_config('lock_timeout', @lock_timeout, true);

-- name: steady_page
-- A page comes in the order of its index. A planner that expects few rows would
-- take any index and sort, and read all tasks of a tenant where it was wrong.
SELECT
    set_config('enable_seqscan', 'off', true),
    set_config('enable_sort', 'off', true),
    set_config('jit', 'off', true),
    set_config('statement_timeout', @statement_timeout, true),
    set_config('lock_timeout', @lock_timeout, true);
