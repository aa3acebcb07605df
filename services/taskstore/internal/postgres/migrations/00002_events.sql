-- The event log, which is the outbox too: rows are appended, never updated, and
-- go away a partition at a time.

-- +goose Up

-- Partitions cover six hours of created_at each, are made ahead and dropped by
-- the program. The default partition takes what has no other, so that an insert
-- never fails. Versions of a task are unique by its row's lock; the key can't
-- say so, since it must contain the partition's column.
CREATE TABLE events
(
    created_at  timestamptz      NOT NULL,
    task_id     uuid             NOT NULL,
    version     bigint           NOT NULL,
    publish_seq bigint           NOT NULL,
    publisher   text COLLATE "C" NOT NULL,
    tenant      text COLLATE "C" NOT NULL,
    data        bytea            NOT NULL,

    CONSTRAINT events_pkey PRIMARY KEY (task_id, version, created_at),
    CONSTRAINT events_numbered CHECK (version >= 1 AND publish_seq >= 1),
    CONSTRAINT events_publisher_bounded CHECK (octet_length(publisher) BETWEEN 1 AND 256)
) PARTITION BY RANGE (created_at);

CREATE INDEX events_by_publisher ON events (publisher, publish_seq);

CREATE TABLE events_default PARTITION OF events DEFAULT;

-- One row for each running task store, updated about once a second.
CREATE TABLE publishers
(
    id                text COLLATE "C" NOT NULL,
    published_through bigint           NOT NULL,
    beat_at           timestamptz      NOT NULL,

    CONSTRAINT publishers_pkey PRIMARY KEY (id),
    CONSTRAINT publishers_id_bounded CHECK (octet_length(id) BETWEEN 1 AND 256),
    CONSTRAINT publishers_counted CHECK (published_through >= 0)
) WITH (fillfactor = 50);
