-- What keeps old data from piling up.

-- +goose Up

-- Rows come here when nobody made partitions in time, and then as many as there
-- are events.
CREATE INDEX events_default_by_age ON events_default (created_at);

ALTER TABLE events_default SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);

-- All exchanges are deleted a day later, as many as come.
ALTER TABLE direct_messages SET (
    autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_analyze_scale_factor = 0.02
);
