-- What background work remembers.

-- +goose Up

-- A role has one holder at a time, by its row and a clock, not by a session:
-- sessions belong to the pooler.
CREATE TABLE roles
(
    name       text COLLATE "C" NOT NULL,
    holder     text COLLATE "C" NOT NULL,
    expires_at timestamptz      NOT NULL,

    CONSTRAINT roles_pkey PRIMARY KEY (name),
    CONSTRAINT roles_held CHECK (name <> '' AND holder <> '')
) WITH (fillfactor = 50);

CREATE TABLE dead_letters
(
    at       timestamptz      NOT NULL,
    task_id  uuid             NOT NULL,
    attempts integer          NOT NULL,
    tenant   text COLLATE "C" NOT NULL,
    agent    text COLLATE "C" NOT NULL,
    reason   text COLLATE "C" NOT NULL,

    CONSTRAINT dead_letters_pkey PRIMARY KEY (task_id),
    CONSTRAINT dead_letters_explained CHECK (octet_length(reason) BETWEEN 1 AND 64 AND attempts >= 0)
);

CREATE INDEX dead_letters_by_age ON dead_letters (at);
