-- The event log as what is still to be published.

-- name: beat_publisher
-- The mark never falls back: another instance may have published on behalf of
-- one that was thought dead.
INSERT INTO publishers (id, published_through, beat_at)
VALUES (@publisher::text, @through::bigint, @now::timestamptz)
ON CONFLICT (id) DO UPDATE
SET published_through = greatest(publishers.published_through, EXCLUDED.published_through),
    beat_at           = EXCLUDED.beat_at;

-- name: stale_publishers
SELECT
    p.id,
    p.published_through,
    p.beat_at
FROM publishers AS p
WHERE p.beat_at < @before::timestamptz
ORDER BY p.beat_at, p.id;

-- name: read_outbox
SELECT
    e.tenant,
    e.task_id,
    e.version,
    e.created_at,
    e.publisher,
    e.publish_seq,
    e.data
FROM events AS e
WHERE e.publisher = @publisher::text
  AND e.publish_seq > @after::bigint
ORDER BY e.publish_seq
LIMIT @limit::bigint;

-- name: advance_publisher
UPDATE publishers
SET published_through = greatest(published_through, @through::bigint)
WHERE id = @publisher::text;

-- name: drop_publisher
DELETE FROM publishers AS p
WHERE p.id = @publisher::text
  AND NOT EXISTS (
      SELECT
      FROM events AS e
      WHERE e.publisher = p.id
        AND e.publish_seq > p.published_through
  );

-- name: outbox_lag
SELECT
    count(*) AS events,
    min(e.created_at) AS oldest
FROM publishers AS p
CROSS JOIN LATERAL (
    SELECT created_at
    FROM events
    WHERE publisher = p.id
      AND publish_seq > p.published_through
    ORDER BY publish_seq
    LIMIT @limit::bigint
) AS e;

-- name: now
SELECT clock_timestamp();

-- name: schema_version
SELECT
    coalesce(max(version_id), 0),
    current_setting('transaction_read_only')::boolean
FROM schema_versions
WHERE is_applied;
