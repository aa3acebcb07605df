-- The second half of an update: everything that is written, sent together with
-- COMMIT. A statement with a guard fails the transaction by itself.

-- name: insert_tasks
INSERT INTO tasks (
    id, tenant, agent, owner, context_id, created_at,
    state, status_version, status_time, version, message_version, handled_version,
    metadata, content_bytes, terminal_at,
    phase, queued_at, due_at, enqueue_count, lease_epoch, write_seq, holder, attempt,
    turn_started_at, traceparent, grant_hash
)
SELECT *
FROM unnest(
    @id::uuid[],
    @tenant::text[],
    @agent::text[],
    @owner::text[],
    @context_id::text[],
    @created_at::timestamptz[],
    @state::smallint[],
    @status_version::bigint[],
    @status_time::timestamptz[],
    @version::bigint[],
    @message_version::bigint[],
    @handled_version::bigint[],
    @metadata::bytea[],
    @content_bytes::bigint[],
    @terminal_at::timestamptz[],
    @phase::smallint[],
    @queued_at::timestamptz[],
    @due_at::timestamptz[],
    @enqueue_count::bigint[],
    @lease_epoch::bigint[],
    @write_seq::bigint[],
    @holder::text[],
    @attempt::integer[],
    @turn_started_at::timestamptz[],
    @traceparent::text[],
    @grant_hash::bytea[]
);

-- name: update_tasks
WITH changed AS (
    UPDATE tasks AS t
    SET state           = c.state,
        status_version  = c.status_version,
        status_time     = c.status_time,
        version         = c.version,
        message_version = c.message_version,
        handled_version = c.handled_version,
        metadata        = c.metadata,
        content_bytes   = c.content_bytes,
        terminal_at     = c.terminal_at,
        phase           = c.phase,
        queued_at       = c.queued_at,
        due_at          = c.due_at,
        enqueue_count   = c.enqueue_count,
        lease_epoch     = c.lease_epoch,
        write_seq       = c.write_seq,
        holder          = c.holder,
        attempt         = c.attempt,
        turn_started_at = c.turn_started_at,
        traceparent     = c.traceparent,
        grant_hash      = c.grant_hash
    FROM unnest(
        @id::uuid[],
        @read_version::bigint[],
        @read_lease_epoch::bigint[],
        @state::smallint[],
        @status_version::bigint[],
        @status_time::timestamptz[],
        @version::bigint[],
        @message_version::bigint[],
        @handled_version::bigint[],
        @metadata::bytea[],
        @content_bytes::bigint[],
        @terminal_at::timestamptz[],
        @phase::smallint[],
        @queued_at::timestamptz[],
        @due_at::timestamptz[],
        @enqueue_count::bigint[],
        @lease_epoch::bigint[],
        @write_seq::bigint[],
        @holder::text[],
        @attempt::integer[],
        @turn_started_at::timestamptz[],
        @traceparent::text[],
        @grant_hash::bytea[]
    ) AS c (
        id, read_version, read_lease_epoch,
        state, status_version, status_time, version, message_version, handled_version,
        metadata, content_bytes, terminal_at,
        phase, queued_at, due_at, enqueue_count, lease_epoch, write_seq, holder, attempt,
        turn_started_at, traceparent, grant_hash
    )
    WHERE t.id = c.id
      AND t.version = c.read_version
      AND t.lease_epoch = c.read_lease_epoch
      AND t.state NOT IN (3, 4, 5, 7)
    RETURNING t.id
)
SELECT errand_require_rows(count(*), @wanted::bigint)
FROM changed;

-- name: insert_messages
INSERT INTO messages (task_id, version, kind, data, request)
SELECT *
FROM unnest(
    @task_ids::uuid[],
    @versions::bigint[],
    @kinds::smallint[],
    @datas::bytea[],
    @requests::bytea[]
);

-- name: delete_artifacts
DELETE FROM artifact_chunks AS a
USING unnest(
    @task_ids::uuid[],
    @artifact_ids::text[]
) AS k (task_id, artifact_id)
WHERE a.task_id = k.task_id
  AND a.artifact_id = k.artifact_id;

-- name: insert_chunks
INSERT INTO artifact_chunks (task_id, artifact_id, version, position, total, data)
SELECT *
FROM unnest(
    @task_ids::uuid[],
    @artifact_ids::text[],
    @versions::bigint[],
    @positions::bigint[],
    @totals::bigint[],
    @datas::bytea[]
);

-- name: insert_events
INSERT INTO events (tenant, task_id, version, created_at, publisher, publish_seq, data)
SELECT *
FROM unnest(
    @tenants::text[],
    @task_ids::uuid[],
    @versions::bigint[],
    @created_ats::timestamptz[],
    @publishers::text[],
    @publish_seqs::bigint[],
    @datas::bytea[]
);

-- name: update_dedupe
WITH changed AS (
    UPDATE dedupe_keys AS d
    SET fingerprint      = c.fingerprint,
        task_id          = c.task_id,
        accepted_version = c.accepted_version,
        direct_id        = c.direct_id
    FROM unnest(
        @tenants::text[],
        @subjects::text[],
        @agents::text[],
        @message_ids::text[],
        @fingerprints::bytea[],
        @task_ids::uuid[],
        @accepted_versions::bigint[],
        @direct_ids::text[]
    ) AS c (tenant, subject, agent, message_id, fingerprint, task_id, accepted_version, direct_id)
    WHERE d.tenant = c.tenant
      AND d.subject = c.subject
      AND d.agent = c.agent
      AND d.message_id = c.message_id
    RETURNING d.message_id
)
SELECT errand_require_rows(count(*), @wanted::bigint)
FROM changed;

-- name: delete_dedupe
DELETE FROM dedupe_keys AS d
USING unnest(
    @tenants::text[],
    @subjects::text[],
    @agents::text[],
    @message_ids::text[]
) AS k (tenant, subject, agent, message_id)
WHERE d.tenant = k.tenant
  AND d.subject = k.subject
  AND d.agent = k.agent
  AND d.message_id = k.message_id;

-- name: put_leases
INSERT INTO leases (task_id, lease_epoch, holder, expires_at)
SELECT *
FROM unnest(
    @task_ids::uuid[],
    @lease_epochs::bigint[],
    @holders::text[],
    @expires_ats::timestamptz[]
)
ON CONFLICT (task_id) DO UPDATE
SET lease_epoch = EXCLUDED.lease_epoch,
    holder      = EXCLUDED.holder,
    expires_at  = EXCLUDED.expires_at;

-- name: delete_leases
DELETE FROM leases
WHERE task_id = ANY (@task_ids::uuid[]);

-- name: insert_directs
INSERT INTO direct_messages (id, tenant, owner, agent, context_id, created_at, message, reply)
SELECT *
FROM unnest(
    @ids::text[],
    @tenants::text[],
    @owners::text[],
    @agents::text[],
    @context_ids::text[],
    @created_ats::timestamptz[],
    @messages::bytea[],
    @replies::bytea[]
);

-- name: touch_contexts
INSERT INTO contexts (tenant, owner, agent, context_id, state, revision, created_at, updated_at, expires_at)
SELECT *
FROM unnest(
    @tenants::text[],
    @owners::text[],
    @agents::text[],
    @context_ids::text[],
    @states::bytea[],
    @revisions::bigint[],
    @created_ats::timestamptz[],
    @updated_ats::timestamptz[],
    @expires_ats::timestamptz[]
)
ON CONFLICT (tenant, owner, agent, context_id) DO UPDATE
SET updated_at = EXCLUDED.updated_at,
    expires_at = EXCLUDED.expires_at;

-- name: put_contexts
INSERT INTO contexts (tenant, owner, agent, context_id, state, revision, created_at, updated_at, expires_at)
SELECT *
FROM unnest(
    @tenants::text[],
    @owners::text[],
    @agents::text[],
    @context_ids::text[],
    @states::bytea[],
    @revisions::bigint[],
    @created_ats::timestamptz[],
    @updated_ats::timestamptz[],
    @expires_ats::timestamptz[]
)
ON CONFLICT (tenant, owner, agent, context_id) DO UPDATE
SET state      = EXCLUDED.state,
    revision   = EXCLUDED.revision,
    created_at = EXCLUDED.created_at,
    updated_at = EXCLUDED.updated_at,
    expires_at = EXCLUDED.expires_at;
