package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// What one partition of events covers.
	partitionSpan = 6 * time.Hour
	// Partitions that exist beyond the current one: the reaper may be away for a
	// day before rows go to the default partition.
	partitionsAhead = 4
	// Rows that are deleted from the default partition at once, and how often in a
	// row: faster than they come, should the reaper have been away.
	defaultPurge       = 5000
	defaultPurgeRounds = 20
	// What is counted of the default partition at most.
	defaultCount = 10_000

	partitionName = "events_20060102_15"
	partitionTime = "2006-01-02 15:04:05-07"
)

// partition is one of events, by the hour at which it begins (UTC).
type partition time.Time

// parsePartition finds the partition that a table is; false for the default one.
func parsePartition(table string) (partition, bool) {
	begin, err := time.Parse(partitionName, table)
	return partition(begin), err == nil
}

func (p partition) end() time.Time { return time.Time(p).Add(partitionSpan) }

// statement is a statement of sql/purge.sql about this partition.
func (p partition) statement(name string) string {
	begin := time.Time(p)
	return strings.NewReplacer(
		"{{partition}}", begin.Format(partitionName),
		"{{from}}", begin.Format(partitionTime),
		"{{to}}", p.end().Format(partitionTime),
	).Replace(text(name))
}

// PurgeEvents drops the partitions that are older than before and all published,
// deletes such rows from the default partition, and makes the partitions of the
// hours to come. Each of these is a transaction of its own that doesn't wait for
// locks: what can't be done now is done by a later call.
func (e *Engine) PurgeEvents(ctx context.Context, now, before time.Time) error {
	tables, err := e.partitions(ctx)
	if err != nil {
		return err
	}
	errs := []error{e.makePartitions(ctx, tables, now)}
	for _, table := range tables {
		if p, ok := parsePartition(table); ok && !p.end().After(before) {
			errs = append(errs, e.dropPartition(ctx, p))
		}
	}
	return errors.Join(append(errs, e.purgeDefault(ctx, before))...)
}

// purgeDefault deletes from the default partition, and tells of what is in there:
// a row at a time is a slow way to forget.
func (e *Engine) purgeDefault(ctx context.Context, before time.Time) error {
	for range defaultPurgeRounds {
		n, err := e.purge(ctx, "purge default partition", sqlPurgeDefaultEvents, before, defaultPurge)
		if err != nil {
			return err
		}
		if n < defaultPurge {
			break
		}
	}
	var counts []int64
	err := e.snapshot(ctx, "count events of the default partition", func(batch *pgx.Batch) {
		queueValues(batch, sqlCountDefaultEvents, withLimit(nil, defaultCount), func(v []int64) { counts = v })
	})
	if err != nil {
		return err
	}
	e.unpartitioned.counted(counts[0])
	if counts[0] > 0 {
		e.logger.WarnContext(ctx, "events lie in the default partition: nobody made partitions in time",
			"at_least", counts[0])
	}
	return nil
}

func (e *Engine) partitions(ctx context.Context) ([]string, error) {
	var tables []string
	err := e.snapshot(ctx, "list event partitions", func(batch *pgx.Batch) {
		queueValues(batch, sqlEventPartitions, args{}, func(v []string) { tables = v })
	})
	return tables, err
}

func (e *Engine) makePartitions(ctx context.Context, tables []string, now time.Time) error {
	var errs []error
	for i := range partitionsAhead + 1 {
		p := partition(now.UTC().Truncate(partitionSpan).Add(time.Duration(i) * partitionSpan))
		if name := time.Time(p).Format(partitionName); !slices.Contains(tables, name) {
			errs = append(errs, e.makePartition(ctx, p))
		}
	}
	return errors.Join(errs...)
}

// makePartition makes a partition unless the default one holds rows of its time
// already; they go away from there.
func (e *Engine) makePartition(ctx context.Context, p partition) error {
	err := e.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		for _, name := range []string{"create_event_partition", "attach_event_partition"} {
			if _, err := tx.Exec(ctx, p.statement(name), pgx.QueryExecModeExec); err != nil {
				return err
			}
		}
		return nil
	})
	switch sqlState(err) {
	case codeCheckViolation, codeDuplicateTable, codeUniqueViolation, codeWrongObject:
		// All but the first: another process has just made it.
		return nil
	}
	if err != nil {
		return fmt.Errorf("make event partition: %w", err)
	}
	return nil
}

func (e *Engine) dropPartition(ctx context.Context, p partition) error {
	err := e.alone(ctx, func(ctx context.Context, tx pgx.Tx) error {
		var needed bool
		err := tx.QueryRow(ctx, p.statement("event_partition_needed"), pgx.QueryExecModeExec).Scan(&needed)
		if err != nil || needed {
			return err
		}
		_, err = tx.Exec(ctx, p.statement("drop_event_partition"), pgx.QueryExecModeExec)
		return err
	})
	if err != nil && sqlState(err) != codeUndefinedTable {
		return fmt.Errorf("drop event partition: %w", err)
	}
	return nil
}

// alone runs statements in a transaction that gives up where it would wait.
func (e *Engine) alone(ctx context.Context, statements func(context.Context, pgx.Tx) error) error {
	return e.try(ctx, func(conn *pgxpool.Conn) error {
		ctx, cancel := e.patience.forAnswer(ctx)
		defer cancel()
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, sqlLimitWaiting.text); err != nil {
				return err
			}
			return statements(ctx, tx)
		})
	})
}
