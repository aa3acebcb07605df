-- What an operator needs to see of a dead letter, and what became of it.

-- +goose Up
ALTER TABLE dead_letters ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN context_id TEXT NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN last_holder TEXT NOT NULL DEFAULT '';
ALTER TABLE dead_letters ADD COLUMN redriven_task_id BLOB CHECK (length(redriven_task_id) = 16);
ALTER TABLE dead_letters ADD COLUMN redriven_at INTEGER CHECK ((redriven_at IS NULL) = (redriven_task_id IS NULL));
ALTER TABLE dead_letters ADD COLUMN redriven_by TEXT NOT NULL DEFAULT '';

UPDATE dead_letters
SET (owner, context_id) = (SELECT t.owner, t.context_id FROM tasks AS t WHERE t.id = dead_letters.task_id);

DROP INDEX dead_letters_by_age;
CREATE INDEX dead_letters_by_age ON dead_letters (at DESC, task_id);

-- +goose Down
DROP INDEX dead_letters_by_age;
CREATE INDEX dead_letters_by_age ON dead_letters (at);
ALTER TABLE dead_letters DROP COLUMN redriven_by;
ALTER TABLE dead_letters DROP COLUMN redriven_at;
ALTER TABLE dead_letters DROP COLUMN redriven_task_id;
ALTER TABLE dead_letters DROP COLUMN last_holder;
ALTER TABLE dead_letters DROP COLUMN context_id;
ALTER TABLE dead_letters DROP COLUMN owner;
