-- What {{page}} stands for. A listing joins the clauses of the filters that it
-- uses: a clause that is there but switched off by its argument would hide the
-- index from a plan that is made for all arguments.

-- name: page_by_id
-- OFFSET 0 keeps the scope out of the choice of an index: without statistics, the
-- planner thinks that a tenant has one task.
SELECT *
FROM (
    SELECT *
    FROM tasks
    WHERE id = ANY (@ids::uuid[])
    OFFSET 0
) AS named
WHERE tenant = @tenant::text
  AND (@agent::text = '' OR agent = @agent::text)
  AND (@owner::text = '' OR owner = @owner::text);

-- name: page_of_tenant
SELECT *
FROM tasks
WHERE tenant = @tenant::text;

-- name: page_agent
AND agent = @agent::text;

-- name: page_owner
AND owner = @owner::text;

-- name: page_context
AND context_id = @context_id::text;

-- name: page_state
AND state = @state::smallint;

-- name: page_since
AND status_time >= @since::timestamptz;

-- name: page_after
AND status_time <= @before_time::timestamptz
  AND (status_time < @before_time::timestamptz OR id > @before_id::uuid);

-- name: page_order
ORDER BY status_time DESC, id;

-- name: page_limit
LIMIT @limit::bigint;
