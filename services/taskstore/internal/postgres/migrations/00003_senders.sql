-- What is remembered of senders: accepted messages, direct exchanges, contexts.

-- +goose Up

-- A record is inserted by the transaction that accepts its message and names, by
-- then, either a task or a direct exchange.
CREATE TABLE dedupe_keys
(
    created_at       timestamptz      NOT NULL,
    accepted_version bigint           NOT NULL,
    task_id          uuid,
    tenant           text COLLATE "C" NOT NULL,
    subject          text COLLATE "C" NOT NULL,
    agent            text COLLATE "C" NOT NULL,
    message_id       text COLLATE "C" NOT NULL,
    direct_id        text COLLATE "C" NOT NULL,
    fingerprint      bytea            NOT NULL,

    CONSTRAINT dedupe_keys_pkey PRIMARY KEY (tenant, subject, agent, message_id),
    CONSTRAINT dedupe_keys_names_bounded CHECK (octet_length(tenant) BETWEEN 1 AND 128
        AND octet_length(subject) <= 512
        AND octet_length(agent) BETWEEN 1 AND 128
        AND octet_length(message_id) BETWEEN 1 AND 1024),
    CONSTRAINT dedupe_keys_one_outcome CHECK (task_id IS NULL OR direct_id = '')
) WITH (
    -- Records are updated once, in the transaction that inserted them.
    fillfactor = 80,
    -- All records are deleted a day later, as many as come.
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- For retention, which starts with the oldest.
CREATE INDEX dedupe_keys_by_age ON dedupe_keys (created_at);

CREATE TABLE direct_messages
(
    created_at timestamptz      NOT NULL,
    id         text COLLATE "C" NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    owner      text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    message    bytea            NOT NULL,
    reply      bytea            NOT NULL,

    CONSTRAINT direct_messages_pkey PRIMARY KEY (tenant, id),
    CONSTRAINT direct_messages_names_bounded CHECK (octet_length(id) BETWEEN 1 AND 256
        AND octet_length(tenant) BETWEEN 1 AND 128
        AND octet_length(agent) BETWEEN 1 AND 128
        AND octet_length(owner) <= 512
        AND octet_length(context_id) <= 1024)
);

CREATE INDEX direct_messages_by_context ON direct_messages (tenant, agent, context_id, created_at DESC);
CREATE INDEX direct_messages_by_age ON direct_messages (created_at);

CREATE TABLE contexts
(
    created_at timestamptz      NOT NULL,
    updated_at timestamptz      NOT NULL,
    expires_at timestamptz      NOT NULL,
    revision   bigint           NOT NULL,
    tenant     text COLLATE "C" NOT NULL,
    owner      text COLLATE "C" NOT NULL,
    agent      text COLLATE "C" NOT NULL,
    context_id text COLLATE "C" NOT NULL,
    state      bytea,

    CONSTRAINT contexts_pkey PRIMARY KEY (tenant, owner, agent, context_id),
    CONSTRAINT contexts_names_bounded CHECK (octet_length(tenant) BETWEEN 1 AND 128
        AND octet_length(agent) BETWEEN 1 AND 128
        AND octet_length(owner) <= 512
        AND octet_length(context_id) <= 1024),
    CONSTRAINT contexts_revision_counted CHECK (revision >= 0)
) WITH (
    -- Each accepted message moves the expiry of its context.
    autovacuum_vacuum_scale_factor = 0.05
);

CREATE INDEX contexts_by_expiry ON contexts (expires_at);
