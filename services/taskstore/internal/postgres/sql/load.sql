-- The first half of an update: reserve, lock, load. Rows are inserted and locked
-- in the order of their keys, which is what keeps updates from deadlocks.

-- name: reserve_dedupe
INSERT INTO dedupe_keys (tenant, subject, agent, message_id, fingerprint, task_id, accepted_version, direct_id, created_at)
SELECT *
FROM unnest(
    @tenants::text[],
    @subjects::text[],
    @agents::text[],
    @message_ids::text[],
    @fingerprints::bytea[],
    @task_ids::uuid[],
    @accepted_versions::bigint[],
    @direct_ids::text[],
    @created_ats::timestamptz[]
)
ON CONFLICT DO NOTHING
RETURNING tenant, subject, agent, message_id;

-- name: load_dedupe
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
FROM unnest(
    @tenants::text[],
    @subjects::text[],
    @agents::text[],
    @message_ids::text[]
) AS k (tenant, subject, agent, message_id)
JOIN dedupe_keys AS d USING (tenant, subject, agent, message_id);

-- name: lock_tasks
SELECT {{task_columns}}
FROM unnest(
    @ids::uuid[],
    @tenants::text[],
    @agents::text[],
    @owners::text[]
) AS k (id, tenant, agent, owner)
JOIN tasks AS t ON t.id = k.id
    AND (k.tenant = '' OR t.tenant = k.tenant)
    AND (k.agent = '' OR t.agent = k.agent)
    AND (k.owner = '' OR t.owner = k.owner)
ORDER BY t.id
FOR UPDATE OF t;

-- name: lock_leases
SELECT
    l.task_id,
    l.lease_epoch,
    l.holder,
    l.expires_at
FROM leases AS l
WHERE l.task_id = ANY (@task_ids::uuid[])
ORDER BY l.task_id
FOR UPDATE;

-- name: load_artifacts
-- The newest chunk of an artifact says all there is to know of it.
SELECT
    k.task_id,
    k.artifact_id,
    c.position,
    c.total
FROM unnest(
    @task_ids::uuid[],
    @artifact_ids::text[]
) AS k (task_id, artifact_id)
CROSS JOIN LATERAL (
    SELECT
        position,
        total
    FROM artifact_chunks
    WHERE task_id = k.task_id
      AND artifact_id = k.artifact_id
    ORDER BY version DESC
    LIMIT 1
) AS c;

-- name: lock_contexts
SELECT {{context_columns}}
FROM unnest(
    @tenants::text[],
    @owners::text[],
    @agents::text[],
    @context_ids::text[]
) AS k (tenant, owner, agent, context_id)
JOIN contexts AS c USING (tenant, owner, agent, context_id)
ORDER BY c.tenant, c.owner, c.agent, c.context_id
FOR UPDATE OF c;
