-- What background work looks for, oldest first and bounded.

-- name: lapsed_leases
SELECT
    l.task_id,
    l.lease_epoch
FROM leases AS l
WHERE l.expires_at < @now::timestamptz
ORDER BY l.expires_at
LIMIT @limit::bigint;

-- name: due_tasks
SELECT t.id
FROM tasks AS t
WHERE t.phase = 1
  AND t.due_at IS NOT NULL
  AND t.due_at <= @now::timestamptz
ORDER BY t.due_at
LIMIT @limit::bigint;

-- name: queues
-- Steps from pair to pair through the index: the backlog of a queue may be long.
WITH RECURSIVE queue (agent, tenant) AS (
    (
        SELECT
            agent,
            tenant
        FROM tasks
        WHERE phase = 1
          AND due_at IS NULL
        ORDER BY agent, tenant
        LIMIT 1
    )
    UNION ALL
    (
        SELECT
            n.agent,
            n.tenant
        FROM queue AS q
        CROSS JOIN LATERAL (
            SELECT
                agent,
                tenant
            FROM tasks
            WHERE phase = 1
              AND due_at IS NULL
              AND (agent, tenant) > (q.agent, q.tenant)
            ORDER BY agent, tenant
            LIMIT 1
        ) AS n
    )
)
SELECT
    agent,
    tenant
FROM queue;

-- name: oldest_queued
SELECT t.id
FROM tasks AS t
WHERE t.agent = @agent::text
  AND t.tenant = @tenant::text
  AND t.phase = 1
  AND t.due_at IS NULL
  AND t.queued_at < @before::timestamptz
ORDER BY t.queued_at, t.id
LIMIT @limit::bigint;

-- name: unsettled_agents
-- Steps from agent to agent through the indexes.
WITH RECURSIVE unsettled (agent) AS (
    SELECT least(
        (SELECT min(p.agent) FROM tasks AS p WHERE p.state IN (6, 8)),
        (SELECT min(r.agent) FROM tasks AS r WHERE r.turn_started_at IS NOT NULL)
    )
    UNION ALL
    SELECT least(
        (SELECT min(p.agent) FROM tasks AS p WHERE p.state IN (6, 8) AND p.agent > u.agent),
        (SELECT min(r.agent) FROM tasks AS r WHERE r.turn_started_at IS NOT NULL AND r.agent > u.agent)
    )
    FROM unsettled AS u
    WHERE u.agent IS NOT NULL
)
SELECT u.agent
FROM unsettled AS u
WHERE u.agent IS NOT NULL;

-- name: parked_tasks
SELECT t.id
FROM tasks AS t
WHERE t.agent = @agent::text
  AND t.state IN (6, 8)
  AND t.status_time < @before::timestamptz
ORDER BY t.status_time, t.id
LIMIT @limit::bigint;

-- name: overrun_tasks
SELECT t.id
FROM tasks AS t
WHERE t.agent = @agent::text
  AND t.turn_started_at IS NOT NULL
  AND t.turn_started_at < @before::timestamptz
ORDER BY t.turn_started_at, t.id
LIMIT @limit::bigint;

-- name: renew_leases
-- Locks in key order: a heartbeat meets the settling of its own tasks.
WITH asked AS (
    SELECT *
    FROM unnest(
        @task_ids::uuid[],
        @lease_epochs::bigint[]
    ) WITH ORDINALITY AS a (task_id, lease_epoch, place)
), held AS (
    SELECT
        l.task_id,
        l.lease_epoch
    FROM leases AS l
    JOIN asked AS a ON a.task_id = l.task_id
        AND a.lease_epoch = l.lease_epoch
    WHERE l.holder = @holder::text
    ORDER BY l.task_id
    FOR UPDATE OF l
), moved AS (
    UPDATE leases AS l
    SET expires_at = @until::timestamptz
    FROM held AS h
    WHERE l.task_id = h.task_id
    RETURNING l.task_id, l.lease_epoch
)
SELECT
    a.place,
    (m.task_id IS NOT NULL) AS held,
    coalesce(t.lease_epoch = a.lease_epoch, false) AS current,
    coalesce(t.state, 0)::smallint AS state,
    coalesce(t.message_version, 0) AS message_version
FROM asked AS a
LEFT JOIN moved AS m ON m.task_id = a.task_id
    AND m.lease_epoch = a.lease_epoch
LEFT JOIN tasks AS t ON t.id = a.task_id
ORDER BY a.place;

-- name: hold_role
INSERT INTO roles (name, holder, expires_at)
VALUES (@role::text, @holder::text, @until::timestamptz)
ON CONFLICT (name) DO UPDATE
SET holder     = EXCLUDED.holder,
    expires_at = EXCLUDED.expires_at
WHERE roles.holder = EXCLUDED.holder
   OR roles.expires_at <= @now::timestamptz
   OR roles.expires_at > @latest::timestamptz;

-- name: drop_role
DELETE FROM roles
WHERE name = @role::text
  AND holder = @holder::text;
