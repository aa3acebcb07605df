-- Ids of tasks are the 16 bytes of their UUIDs. Times are milliseconds since 1970,
-- in UTC. States are the numbers of lf.a2a.v1.TaskState; 3, 4, 5 and 7 are the
-- terminal ones. Encoded protobuf is a BLOB, what is searched is a column.

-- +goose Up
CREATE TABLE tasks (
    id BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    owner TEXT NOT NULL,
    context_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    state INTEGER NOT NULL CHECK (state BETWEEN 1 AND 8),
    status_version INTEGER NOT NULL,
    status_time INTEGER NOT NULL,
    version INTEGER NOT NULL,
    message_version INTEGER NOT NULL,
    handled_version INTEGER NOT NULL,
    metadata BLOB,
    content_bytes  INTEGER NOT NULL CHECK (content_bytes >= 0),
    terminal_at INTEGER,
    -- Outside the version from here on.
    phase INTEGER NOT NULL CHECK (phase BETWEEN 0 AND 2),
    queued_at INTEGER,
    due_at INTEGER,
    enqueue_count INTEGER NOT NULL,
    lease_epoch INTEGER NOT NULL,
    write_seq INTEGER NOT NULL,
    holder TEXT NOT NULL,
    attempt INTEGER NOT NULL CHECK (attempt >= 0),
    turn_started_at INTEGER,
    traceparent TEXT NOT NULL,
    grant_hash BLOB,
    CHECK (status_version BETWEEN 1 AND version),
    CHECK (message_version BETWEEN 0 AND version),
    CHECK (handled_version BETWEEN 0 AND message_version),
    CHECK ((terminal_at IS NOT NULL) = (state IN (3, 4, 5, 7))),
    -- Whatever is not settled is queued or leased: no task can be forgotten.
    CHECK ((phase IN (1, 2)) = (state IN (1, 2))),
    CHECK (phase <> 1 OR queued_at IS NOT NULL),
    CHECK (due_at IS NULL OR phase = 1),
    CHECK (phase <> 2 OR (holder <> '' AND lease_epoch > 0)),
    CHECK (grant_hash IS NULL OR state = 8)
) STRICT;

-- Lists. What stands behind the order is there so that counting stays in the index.
CREATE INDEX tasks_by_status_time ON tasks (tenant, agent, status_time DESC, id);
CREATE INDEX tasks_by_owner ON tasks (tenant, agent, owner, status_time DESC, id, state);
CREATE INDEX tasks_by_context ON tasks (tenant, agent, context_id, status_time DESC, id, owner, state);
CREATE INDEX tasks_by_state ON tasks (tenant, agent, state, status_time DESC, id, owner);
-- Background work; each holds only the rows that wait for it.
CREATE INDEX tasks_queued ON tasks (agent, tenant, queued_at, id) WHERE phase = 1 AND due_at IS NULL;
CREATE INDEX tasks_delayed ON tasks (due_at) WHERE phase = 1 AND due_at IS NOT NULL;
CREATE INDEX tasks_parked ON tasks (agent, status_time) WHERE state IN (6, 8);
CREATE INDEX tasks_running ON tasks (agent, turn_started_at) WHERE turn_started_at IS NOT NULL;

CREATE TABLE leases (
    task_id BLOB NOT NULL PRIMARY KEY REFERENCES tasks (id),
    lease_epoch INTEGER NOT NULL,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX leases_by_expiry ON leases (expires_at);

CREATE TABLE messages (
    task_id BLOB NOT NULL REFERENCES tasks (id),
    version INTEGER NOT NULL,
    kind INTEGER NOT NULL CHECK (kind IN (1, 2)),
    data BLOB NOT NULL,
    request BLOB,
    PRIMARY KEY (task_id, version)
) STRICT;

CREATE TABLE artifact_chunks (
    task_id BLOB NOT NULL REFERENCES tasks (id),
    artifact_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    position INTEGER NOT NULL,
    total INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (task_id, artifact_id, version)
) STRICT;

CREATE TABLE events (
    task_id BLOB NOT NULL REFERENCES tasks (id),
    version INTEGER NOT NULL,
    tenant TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    publisher TEXT NOT NULL,
    publish_seq INTEGER NOT NULL,
    data BLOB NOT NULL,
    PRIMARY KEY (task_id, version)
) STRICT;

CREATE UNIQUE INDEX events_outbox ON events (publisher, publish_seq);

CREATE TABLE publishers (
    id TEXT NOT NULL PRIMARY KEY,
    published_through INTEGER NOT NULL,
    beat_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dedupe_keys (
    tenant TEXT NOT NULL,
    subject TEXT NOT NULL,
    agent TEXT NOT NULL,
    message_id TEXT NOT NULL,
    fingerprint BLOB NOT NULL,
    task_id BLOB,
    direct_id TEXT NOT NULL,
    accepted_version INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, subject, agent, message_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX dedupe_keys_by_age ON dedupe_keys (created_at);

CREATE TABLE direct_messages (
    tenant TEXT NOT NULL,
    id TEXT NOT NULL,
    owner TEXT NOT NULL,
    agent TEXT NOT NULL,
    context_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    message BLOB NOT NULL,
    reply BLOB NOT NULL,
    PRIMARY KEY (tenant, id)
) STRICT;

CREATE INDEX direct_messages_by_context ON direct_messages (tenant, agent, context_id, created_at DESC);
CREATE INDEX direct_messages_by_age ON direct_messages (created_at);

CREATE TABLE contexts (
    tenant TEXT NOT NULL,
    owner TEXT NOT NULL,
    agent TEXT NOT NULL,
    context_id TEXT NOT NULL,
    state BLOB,
    revision INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (tenant, owner, agent, context_id)
) STRICT;

CREATE INDEX contexts_by_expiry ON contexts (expires_at);

CREATE TABLE roles (
    name TEXT NOT NULL PRIMARY KEY,
    holder TEXT NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE dead_letters (
    task_id BLOB NOT NULL PRIMARY KEY REFERENCES tasks (id),
    tenant TEXT NOT NULL,
    agent TEXT NOT NULL,
    reason TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX dead_letters_by_age ON dead_letters (at);

-- Terminal is final. Statements refuse it by predicate; these are the backstop.

-- +goose StatementBegin
CREATE TRIGGER tasks_terminal_is_final
BEFORE UPDATE ON tasks
WHEN OLD.state IN (3, 4, 5, 7)
BEGIN
    SELECT RAISE(ABORT, 'a terminal task is final');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER messages_terminal_is_final
BEFORE INSERT ON messages
WHEN (SELECT state FROM tasks WHERE id = NEW.task_id) IN (3, 4, 5, 7)
BEGIN
    SELECT RAISE(ABORT, 'a terminal task is final');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER artifact_chunks_terminal_is_final
BEFORE INSERT ON artifact_chunks
WHEN (SELECT state FROM tasks WHERE id = NEW.task_id) IN (3, 4, 5, 7)
BEGIN
    SELECT RAISE(ABORT, 'a terminal task is final');
END;
-- +goose StatementEnd

-- +goose StatementBegin
CREATE TRIGGER events_terminal_is_final
BEFORE INSERT ON events
WHEN (SELECT state FROM tasks WHERE id = NEW.task_id) IN (3, 4, 5, 7)
BEGIN
    SELECT RAISE(ABORT, 'a terminal task is final');
END;
-- +goose StatementEnd

-- +goose Down
DROP TABLE dead_letters;
DROP TABLE roles;
DROP TABLE contexts;
DROP TABLE direct_messages;
DROP TABLE dedupe_keys;
DROP TABLE publishers;
DROP TABLE events;
DROP TABLE artifact_chunks;
DROP TABLE messages;
DROP TABLE leases;
DROP TABLE tasks;
