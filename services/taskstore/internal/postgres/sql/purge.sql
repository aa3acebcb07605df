-- Retention. Deletes are small and many, so that none holds its locks for long,
-- and pass over rows that somebody has locked: those are in use.

-- name: purge_dedupe
-- A record is never younger than its task's end, so the oldest records are the
-- candidates; those of tasks that are still open are passed over.
DELETE FROM dedupe_keys AS d
USING (
    SELECT
        k.tenant,
        k.subject,
        k.agent,
        k.message_id
    FROM dedupe_keys AS k
    LEFT JOIN tasks AS t ON t.id = k.task_id
    WHERE k.created_at < @before::timestamptz
      AND (t.id IS NULL OR t.terminal_at < @before::timestamptz)
    ORDER BY k.created_at
    LIMIT @limit::bigint
    FOR UPDATE OF k SKIP LOCKED
) AS old
WHERE d.tenant = old.tenant
  AND d.subject = old.subject
  AND d.agent = old.agent
  AND d.message_id = old.message_id;

-- name: purge_directs
DELETE FROM direct_messages AS d
USING (
    SELECT
        k.tenant,
        k.id
    FROM direct_messages AS k
    WHERE k.created_at < @before::timestamptz
    ORDER BY k.created_at
    LIMIT @limit::bigint
    FOR UPDATE SKIP LOCKED
) AS old
WHERE d.tenant = old.tenant
  AND d.id = old.id;

-- name: purge_contexts
DELETE FROM contexts AS c
USING (
    SELECT
        k.tenant,
        k.owner,
        k.agent,
        k.context_id
    FROM contexts AS k
    WHERE k.expires_at < @before::timestamptz
    ORDER BY k.expires_at
    LIMIT @limit::bigint
    FOR UPDATE SKIP LOCKED
) AS old
WHERE c.tenant = old.tenant
  AND c.owner = old.owner
  AND c.agent = old.agent
  AND c.context_id = old.context_id
  AND c.expires_at < @before::timestamptz;

-- name: purge_default_events
DELETE FROM events_default AS e
WHERE e.ctid = ANY (ARRAY(
    SELECT o.ctid
    FROM events_default AS o
    WHERE o.created_at < @before::timestamptz
      AND NOT EXISTS (
          SELECT
          FROM publishers AS p
          WHERE p.id = o.publisher
            AND p.published_through < o.publish_seq
      )
    LIMIT @limit::bigint
));

-- name: count_default_events
SELECT count(*)
FROM (
    SELECT
    FROM events_default
    LIMIT @limit::bigint
) AS counted;

-- name: event_partitions
SELECT c.relname
FROM pg_inherits AS i
JOIN pg_class AS c ON c.oid = i.inhrelid
WHERE i.inhparent = 'events'::regclass
ORDER BY c.relname;

-- name: limit_waiting
-- DDL waits behind readers and lets everybody else wait behind itself: not long.
SELECT
    set_config('lock_timeout', '200ms', true),
    set_config('statement_timeout', '5s', true);

-- name: create_event_partition
-- Insert-only and gone within days: vacuum would only read it for nothing.
CREATE TABLE IF NOT EXISTS {{partition}} (
    LIKE events INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING INDEXES
) WITH (
    autovacuum_vacuum_insert_threshold = -1
);

-- name: attach_event_partition
-- Unlike CREATE TABLE … PARTITION OF, this leaves writers of other partitions alone.
ALTER TABLE events
ATTACH PARTITION {{partition}}
FOR VALUES FROM ('{{from}}') TO ('{{to}}');

-- name: event_partition_needed
SELECT EXISTS (
    SELECT
    FROM publishers AS p
    CROSS JOIN LATERAL (
        SELECT
        FROM {{partition}} AS e
        WHERE e.publisher = p.id
          AND e.publish_seq > p.published_through
        LIMIT 1
    ) AS unpublished
);

-- name: drop_event_partition
DROP TABLE {{partition}};
