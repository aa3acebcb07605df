-- Reads of whole tasks run in one snapshot. {{page}} selects the tasks, in the
-- order of the answer; see page.sql there also for OFFSET 0.

-- name: read_page
SELECT {{task_columns}}
FROM ({{page}}) AS t
ORDER BY t.status_time DESC, t.id;

-- name: read_page_messages
-- The message of the current status always, of the history the newest.
SELECT
    m.task_id,
    m.version,
    m.kind,
    m.data,
    m.request
FROM ({{page}}) AS t
CROSS JOIN LATERAL (
    (
        SELECT *
        FROM messages
        WHERE task_id = t.id
          AND version = t.status_version
          AND kind = 2
    )
    UNION ALL
    (
        SELECT *
        FROM messages
        WHERE task_id = t.id
          AND (version <> t.status_version OR kind <> 2)
        ORDER BY version DESC
        LIMIT @history::bigint
    )
) AS m
ORDER BY m.task_id, m.version;

-- name: read_page_chunks
SELECT
    c.task_id,
    c.artifact_id,
    c.version,
    c.position,
    c.total,
    c.data
FROM ({{page}}) AS t
JOIN artifact_chunks AS c ON c.task_id = t.id
ORDER BY c.task_id, c.position, c.version;

-- name: count_page
SELECT count(*)
FROM ({{page}}) AS t;

-- name: estimate_page
EXPLAIN (FORMAT JSON) {{page}};

-- name: read_heads
SELECT
    t.id,
    t.version,
    t.state
FROM unnest(
    @tenants::text[],
    @ids::uuid[]
) AS k (tenant, id)
CROSS JOIN LATERAL (
    SELECT *
    FROM tasks
    WHERE tasks.id = k.id
    OFFSET 0
) AS t
WHERE t.tenant = k.tenant;

-- name: read_head
SELECT
    t.id,
    t.version,
    t.state
FROM (
    SELECT *
    FROM tasks
    WHERE id = @id::uuid
    OFFSET 0
) AS t
WHERE t.tenant = @tenant::text
  AND (@agent::text = '' OR t.agent = @agent::text)
  AND (@owner::text = '' OR t.owner = @owner::text);

-- name: read_events
SELECT
    e.tenant,
    e.task_id,
    e.version,
    e.created_at,
    e.publisher,
    e.publish_seq,
    e.data
FROM events AS e
WHERE e.task_id = @id::uuid
  AND e.version > @after::bigint
ORDER BY e.version
LIMIT @limit::bigint;

-- name: read_user_messages
SELECT
    m.task_id,
    m.version,
    m.kind,
    m.data,
    m.request
FROM (
    SELECT *
    FROM tasks
    WHERE id = @id::uuid
    OFFSET 0
) AS t
JOIN messages AS m ON m.task_id = t.id
WHERE t.tenant = @tenant::text
  AND m.kind = 1
  AND m.version > @after::bigint
ORDER BY m.version;

-- name: read_dedupe
SELECT
    d.tenant,
    d.subject,
    d.agent,
    d.message_id,
    d.fingerprint,
    d.task_id,
    d.accepted_version,
    d.direct_id,
    d.created_at
FROM dedupe_keys AS d
WHERE d.tenant = @tenant::text
  AND d.subject = @subject::text
  AND d.agent = @agent::text
  AND d.message_id = @message_id::text;

-- name: read_direct
SELECT {{direct_columns}}
FROM direct_messages AS d
WHERE d.tenant = @tenant::text
  AND d.id = @id::text;

-- name: read_context
SELECT {{context_columns}}
FROM contexts AS c
WHERE c.tenant = @tenant::text
  AND c.owner = @owner::text
  AND c.agent = @agent::text
  AND c.context_id = @context_id::text;

-- name: read_context_tasks
SELECT
    t.id AS task_id,
    t.created_at
FROM (
    SELECT *
    FROM tasks
    WHERE tenant = @tenant::text
      AND agent = @agent::text
      AND context_id = @context_id::text
    OFFSET 0
) AS t
WHERE t.owner = @owner::text
ORDER BY t.created_at DESC, t.id DESC
LIMIT @limit::bigint;

-- name: read_context_directs
SELECT {{direct_columns}}
FROM direct_messages AS d
WHERE d.tenant = @tenant::text
  AND d.agent = @agent::text
  AND d.context_id = @context_id::text
  AND d.owner = @owner::text
ORDER BY d.created_at DESC, d.id DESC
LIMIT @limit::bigint;
