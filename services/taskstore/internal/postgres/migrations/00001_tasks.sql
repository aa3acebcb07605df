-- Tasks and what grows with them. Ids that clients choose are compared byte by
-- byte (COLLATE "C"), so that the order of keys here is the order of keys in the
-- program, which is the order in which rows are locked. Their length is bounded
-- well below what a B-tree entry holds.
--
-- There are no foreign keys: all rows of a task are written by the transaction
-- that holds the lock of its row in tasks, and a check per row would double the
-- cost of an appended chunk. The triggers below refuse what the lock forbids.

-- +goose Up

-- +goose StatementBegin
-- Fails the transaction when a guarded statement met fewer rows than it named.
-- It runs beside the statement in one pipeline with COMMIT, which a client that
-- counts rows itself would have to wait for.
CREATE FUNCTION errand_require_rows(met bigint, wanted bigint) RETURNS void
    LANGUAGE plpgsql AS
$$
BEGIN
    IF met <> wanted THEN
        RAISE EXCEPTION 'guarded statement met % of % rows', met, wanted
            USING ERRCODE = 'ZE001';
    END IF;
END
$$;
-- +goose StatementEnd

-- state holds the numbers of lf.a2a.v1.TaskState: 1 SUBMITTED, 2 WORKING,
-- 3 COMPLETED, 4 FAILED, 5 CANCELED, 6 INPUT_REQUIRED, 7 REJECTED,
-- 8 AUTH_REQUIRED. phase: 0 idle, 1 queued, 2 leased.
--
-- A row is updated a handful of times soon after its insert and then never
-- again. Room for some of the new versions is left on its page, which updates
-- that touch no indexed column (chunks, enqueue counts) use without touching any
-- index.
CREATE TABLE tasks
(
    id              uuid             NOT NULL,
    version         bigint           NOT NULL,
    status_version  bigint           NOT NULL,
    message_version bigint           NOT NULL,
    handled_version bigint           NOT NULL,
    content_bytes   bigint           NOT NULL,
    created_at      timestamptz      NOT NULL,
    status_time     timestamptz      NOT NULL,
    terminal_at     timestamptz,
    queued_at       timestamptz,
    due_at          timestamptz,
    turn_started_at timestamptz,
    enqueue_count   bigint           NOT NULL,
    lease_epoch     bigint           NOT NULL,
    write_seq       bigint           NOT NULL,
    attempt         integer          NOT NULL,
    state           smallint         NOT NULL,
    phase           smallint         NOT NULL,
    tenant          text COLLATE "C" NOT NULL,
    agent           text COLLATE "C" NOT NULL,
    owner           text COLLATE "C" NOT NULL,
    context_id      text COLLATE "C" NOT NULL,
    holder          text COLLATE "C" NOT NULL,
    traceparent     text COLLATE "C" NOT NULL,
    grant_hash      bytea,
    metadata        bytea,

    CONSTRAINT tasks_pkey PRIMARY KEY (id),
    CONSTRAINT tasks_names_bounded CHECK (octet_length(tenant) BETWEEN 1 AND 128
        AND octet_length(agent) BETWEEN 1 AND 128
        AND octet_length(owner) <= 512
        AND octet_length(context_id) <= 1024),
    CONSTRAINT tasks_state_known CHECK (state BETWEEN 1 AND 8),
    CONSTRAINT tasks_phase_known CHECK (phase BETWEEN 0 AND 2),
    CONSTRAINT tasks_versions_ordered CHECK (status_version BETWEEN 1 AND version
        AND message_version BETWEEN 0 AND version
        AND handled_version BETWEEN 0 AND message_version),
    CONSTRAINT tasks_terminal_has_time CHECK ((state IN (3, 4, 5, 7)) = (terminal_at IS NOT NULL)),
    -- Whatever is not settled is queued or leased: no task can be forgotten.
    CONSTRAINT tasks_unsettled_has_work CHECK ((state IN (1, 2)) = (phase IN (1, 2))),
    CONSTRAINT tasks_queued_has_time CHECK (phase <> 1 OR queued_at IS NOT NULL),
    CONSTRAINT tasks_delay_is_queued CHECK (due_at IS NULL OR phase = 1),
    CONSTRAINT tasks_leased_has_holder CHECK (phase <> 2 OR (holder <> '' AND lease_epoch > 0)),
    CONSTRAINT tasks_grant_is_awaited CHECK (grant_hash IS NULL OR (state = 8 AND octet_length(grant_hash) = 32))
) WITH (
    fillfactor = 80,
    -- A fifth of millions of rows is too long to wait for, above all for the
    -- visibility map, without which a count visits every row.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_insert_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- One index for each way to list, so that a page costs the same however many
-- tasks there are and however rare the matches. Of two that look the same to it,
-- the planner takes the newest.
CREATE INDEX tasks_by_status_time ON tasks (tenant, agent, status_time DESC, id);
CREATE INDEX tasks_by_state ON tasks (tenant, agent, state, status_time DESC, id);
CREATE INDEX tasks_by_owner ON tasks (tenant, agent, owner, status_time DESC, id);
CREATE INDEX tasks_by_context ON tasks (tenant, agent, context_id, status_time DESC, id);

-- What background work looks for is few rows of many.
CREATE INDEX tasks_queued ON tasks (agent, tenant, queued_at, id) WHERE phase = 1 AND due_at IS NULL;
CREATE INDEX tasks_delayed ON tasks (due_at, id) WHERE phase = 1 AND due_at IS NOT NULL;
CREATE INDEX tasks_parked ON tasks (agent, status_time, id) WHERE state IN (6, 8);
CREATE INDEX tasks_running ON tasks (agent, turn_started_at, id) WHERE turn_started_at IS NOT NULL;

-- +goose StatementBegin
-- The backstop of rules that statements keep by predicate: terminal is final,
-- and numbers only grow.
CREATE FUNCTION errand_refuse_change() RETURNS trigger
    LANGUAGE plpgsql AS
$$
BEGIN
    RAISE EXCEPTION 'task % is at version % in state % and may not become version % in state %',
        OLD.id, OLD.version, OLD.state, NEW.version, NEW.state
        USING ERRCODE = 'ZE002';
END
$$;
-- +goose StatementEnd

CREATE TRIGGER tasks_refuse_change
    BEFORE UPDATE ON tasks
    FOR EACH ROW
    WHEN ((OLD.state IN (3, 4, 5, 7) AND OLD.* IS DISTINCT FROM NEW.*)
        OR NEW.version < OLD.version
        OR NEW.lease_epoch < OLD.lease_epoch)
EXECUTE FUNCTION errand_refuse_change();

-- Time only: a heartbeat moves expires_at and must touch neither tasks nor its
-- indexes. There is no index on expires_at either, which keeps heartbeats on
-- their page; the reaper reads the whole table, one narrow row for each running
-- task.
CREATE TABLE leases
(
    task_id     uuid             NOT NULL,
    lease_epoch bigint           NOT NULL,
    expires_at  timestamptz      NOT NULL,
    holder      text COLLATE "C" NOT NULL,

    CONSTRAINT leases_pkey PRIMARY KEY (task_id),
    CONSTRAINT leases_held CHECK (holder <> '' AND octet_length(holder) <= 256 AND lease_epoch > 0)
) WITH (
    fillfactor = 50,
    -- Every task that runs leaves a dead row here.
    autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_threshold = 1000
);

-- kind: 1 message of a sender, 2 message of a status.
CREATE TABLE messages
(
    task_id uuid     NOT NULL,
    version bigint   NOT NULL,
    kind    smallint NOT NULL,
    data    bytea    NOT NULL,
    request bytea,

    CONSTRAINT messages_pkey PRIMARY KEY (task_id, version),
    CONSTRAINT messages_kind_known CHECK (kind IN (1, 2)),
    CONSTRAINT messages_request_is_senders CHECK (request IS NULL OR kind = 1)
);

CREATE TABLE artifact_chunks
(
    task_id     uuid             NOT NULL,
    version     bigint           NOT NULL,
    position    bigint           NOT NULL,
    total       bigint           NOT NULL,
    artifact_id text COLLATE "C" NOT NULL,
    data        bytea            NOT NULL,

    CONSTRAINT artifact_chunks_pkey PRIMARY KEY (task_id, artifact_id, version),
    CONSTRAINT artifact_chunks_id_bounded CHECK (octet_length(artifact_id) <= 1024),
    CONSTRAINT artifact_chunks_placed CHECK (position BETWEEN 1 AND version AND total >= 0)
);

-- +goose StatementBegin
-- A terminal task takes no message and no chunk: its version can't grow, and
-- what is added must lie within it. Runs once for each statement.
CREATE FUNCTION errand_refuse_addition() RETURNS trigger
    LANGUAGE plpgsql AS
$$
BEGIN
    IF EXISTS (SELECT
               FROM added
               LEFT JOIN tasks ON tasks.id = added.task_id
               WHERE tasks.id IS NULL
                  OR tasks.version < added.version) THEN
        RAISE EXCEPTION 'rows added to % beyond the version of their tasks', TG_TABLE_NAME
            USING ERRCODE = 'ZE002';
    END IF;
    RETURN NULL;
END
$$;
-- +goose StatementEnd

CREATE TRIGGER messages_refuse_addition
    AFTER INSERT ON messages
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT
EXECUTE FUNCTION errand_refuse_addition();

CREATE TRIGGER artifact_chunks_refuse_addition
    AFTER INSERT ON artifact_chunks
    REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT
EXECUTE FUNCTION errand_refuse_addition();
