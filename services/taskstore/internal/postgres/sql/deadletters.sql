-- Dead letters: few rows, and operators who wait for them. One index, in the
-- order of the listing, serves every filter.

-- name: insert_dead_letters
INSERT INTO dead_letters (task_id, tenant, agent, owner, context_id, reason, attempts, last_holder, at)
SELECT *
FROM unnest(
    @task_ids::uuid[],
    @tenants::text[],
    @agents::text[],
    @owners::text[],
    @context_ids::text[],
    @reasons::text[],
    @attempts::integer[],
    @last_holders::text[],
    @ats::timestamptz[]
);

-- name: lock_dead_letters
SELECT {{dead_letter_columns}}
FROM dead_letters AS d
WHERE d.task_id = ANY (@task_ids::uuid[])
ORDER BY d.task_id
FOR UPDATE;

-- name: redrive_dead_letters
WITH changed AS (
    UPDATE dead_letters AS d
    SET redriven_task_id = r.redriven_task_id,
        redriven_at      = r.redriven_at,
        redriven_by      = r.redriven_by
    FROM unnest(
        @task_ids::uuid[],
        @redriven_task_ids::uuid[],
        @redriven_ats::timestamptz[],
        @redriven_bys::text[]
    ) AS r (task_id, redriven_task_id, redriven_at, redriven_by)
    WHERE d.task_id = r.task_id
      AND d.redriven_at IS NULL
    RETURNING d.task_id
)
SELECT errand_require_rows(count(*), @wanted::bigint)
FROM changed;

-- name: read_dead_letter
SELECT {{dead_letter_columns}}
FROM dead_letters AS d
WHERE d.task_id = @task_id::uuid;

-- name: list_dead_letters
-- since and until are never NULL, so that they bound the index; the others may be.
SELECT {{dead_letter_columns}}
FROM dead_letters AS d
WHERE d.at >= @since::timestamptz
  AND d.at <= @until::timestamptz
  AND (d.at < @until::timestamptz OR d.task_id > @after_id::uuid)
  AND (@tenant::text IS NULL OR d.tenant = @tenant::text)
  AND (@agent::text IS NULL OR d.agent = @agent::text)
  AND (@reason::text IS NULL OR d.reason = @reason::text)
  AND (@redriven::boolean IS NULL OR (d.redriven_at IS NOT NULL) = @redriven::boolean)
ORDER BY d.at DESC, d.task_id
LIMIT @limit::bigint;

-- name: purge_dead_letters
-- A letter that is being redriven is left for the next time.
DELETE FROM dead_letters AS d
USING (
    SELECT k.task_id
    FROM dead_letters AS k
    WHERE k.at < @before::timestamptz
    ORDER BY k.at
    LIMIT @limit::bigint
    FOR UPDATE SKIP LOCKED
) AS old
WHERE d.task_id = old.task_id;
