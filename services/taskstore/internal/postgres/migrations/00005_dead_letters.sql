-- What an operator needs to see of a dead letter, and what became of it.

-- +goose Up

-- The program before this one doesn't know the new columns: hence the defaults.
ALTER TABLE dead_letters
    ADD COLUMN redriven_at      timestamptz,
    ADD COLUMN redriven_task_id uuid,
    ADD COLUMN owner            text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN context_id       text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN last_holder      text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN redriven_by      text COLLATE "C" NOT NULL DEFAULT '',
    ADD CONSTRAINT dead_letters_redriven_whole CHECK ((redriven_at IS NULL) = (redriven_task_id IS NULL)),
    ADD CONSTRAINT dead_letters_names_bounded CHECK (octet_length(owner) <= 512
        AND octet_length(context_id) <= 1024
        AND octet_length(last_holder) <= 256
        AND octet_length(redriven_by) <= 256);

UPDATE dead_letters AS d
SET owner      = t.owner,
    context_id = t.context_id
FROM tasks AS t
WHERE t.id = d.task_id;

-- The order of a listing, and from its end that of retention.
DROP INDEX dead_letters_by_age;
CREATE INDEX dead_letters_by_age ON dead_letters (at DESC, task_id);
