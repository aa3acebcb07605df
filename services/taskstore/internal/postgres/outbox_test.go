package postgres_test

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func TestTheOutboxIsAPublishersEventsAboveItsMark(t *testing.T) {
	t.Parallel()
	d, at := newDatabase(t), now()
	task := queuedTask(at.Add(-time.Minute))
	task.Version = 3
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{task},
		Events:      []engine.Event{event(task, 1, 5), event(task, 2, 6), event(task, 3, 9)},
	})
	n, _, err := d.OutboxLag(t.Context(), 10)
	require.NoError(t, err)
	require.Zero(t, n, "what no publisher claims is published")

	require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 0, at))
	n, oldest, err := d.OutboxLag(t.Context(), 2)
	require.NoError(t, err)
	require.Equal(t, 2, n, "bounded")
	require.Equal(t, task.CreatedAt, oldest)

	require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 5, at))
	require.NoError(t, d.AdvancePublisher(t.Context(), "store-1", 6))
	require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 5, at.Add(time.Second)))
	stale, err := d.StalePublishers(t.Context(), at.Add(time.Minute))
	require.NoError(t, err)
	require.Equal(t, []engine.Publisher{{ID: "store-1", Through: 6, BeatAt: at.Add(time.Second)}}, stale, "marks don't fall back")
	stale, err = d.StalePublishers(t.Context(), at.Add(time.Second))
	require.NoError(t, err)
	require.Empty(t, stale)

	events, err := d.ReadOutbox(t.Context(), "store-1", 5, 1)
	require.NoError(t, err)
	require.Equal(t, []engine.Event{event(task, 2, 6)}, events)

	require.NoError(t, d.DropPublisher(t.Context(), "store-1"))
	require.Equal(t, 1, one[int](t, d, "SELECT count(*) FROM publishers"), "it has events above its mark")
	require.NoError(t, d.AdvancePublisher(t.Context(), "store-1", 9))
	require.NoError(t, d.DropPublisher(t.Context(), "store-1"))
	require.Zero(t, one[int](t, d, "SELECT count(*) FROM publishers"))
}

func partitions(t *testing.T, d *database) []string {
	t.Helper()
	return one[[]string](t, d, "SELECT array_agg(inhrelid::regclass::text ORDER BY inhrelid::regclass::text) FROM pg_inherits WHERE inhparent = 'events'::regclass")
}

func TestPartitionsAreMadeAheadAndDroppedOnceTheirEventsArePublished(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	at := now().Truncate(6 * time.Hour).Add(48 * time.Hour)
	require.NoError(t, d.PurgeEvents(t.Context(), at, at.Add(-24*time.Hour)))
	current := at.Format("events_20060102_15")
	require.Contains(t, partitions(t, d), current)
	require.Contains(t, partitions(t, d), at.Add(24*time.Hour).Format("events_20060102_15"))

	task := queuedTask(at)
	d.update(t, &engine.Changes{InsertTasks: []*engine.Task{task}, Events: []engine.Event{event(task, 1, 1)}})
	require.Equal(t, 1, one[int](t, d, "SELECT count(*) FROM "+current))
	require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 0, at))

	later := at.Add(72 * time.Hour)
	require.NoError(t, d.PurgeEvents(t.Context(), later, later.Add(-24*time.Hour)))
	require.Contains(t, partitions(t, d), current, "it holds an event that is not published")
	require.NotContains(t, partitions(t, d), at.Add(6*time.Hour).Format("events_20060102_15"))

	require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 1, at))
	require.NoError(t, d.PurgeEvents(t.Context(), later, later.Add(-24*time.Hour)))
	require.NotContains(t, partitions(t, d), current)
	events, head, err := d.ReadEvents(t.Context(), engine.Scope{Tenant: tenant}, task.ID, 0, 10)
	require.NoError(t, err)
	require.Empty(t, events)
	require.Equal(t, int64(1), head.Version)
}

func TestAnEventWithoutAPartitionIsKeptAndPurgedAllTheSame(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	at := now().Add(90 * 24 * time.Hour)
	published, unpublished := queuedTask(at), queuedTask(at)
	d.update(t, &engine.Changes{
		InsertTasks: []*engine.Task{published, unpublished},
		Events:      []engine.Event{event(published, 1, 1), event(unpublished, 1, 2)},
	})
	require.NoError(t, d.BeatPublisher(t.Context(), "store-1", 1, at))
	require.NoError(t, d.PurgeEvents(t.Context(), at, at), "its partition can't be made now; the others are")
	require.NotContains(t, partitions(t, d), at.Truncate(6*time.Hour).Format("events_20060102_15"))
	require.Contains(t, partitions(t, d), at.Truncate(6*time.Hour).Add(6*time.Hour).Format("events_20060102_15"))

	require.NoError(t, d.PurgeEvents(t.Context(), at, at.Add(time.Second)))
	require.Equal(t, []int64{2}, one[[]int64](t, d, "SELECT array_agg(publish_seq) FROM events"))
}

// Dropping a partition must never hold up those who write.
func TestPurgingGivesUpWhereItWouldWait(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	at := now()
	reader, err := d.pool(t).Begin(t.Context())
	require.NoError(t, err)
	defer reader.Rollback(context.Background())
	_, err = reader.Exec(t.Context(), "SELECT count(*) FROM events")
	require.NoError(t, err)

	later := at.Add(72 * time.Hour)
	purged := make(chan error)
	go func() { purged <- d.PurgeEvents(t.Context(), later, later) }()
	for waiting := true; waiting; {
		select {
		case err := <-purged:
			require.ErrorIs(t, err, engine.ErrUnavailable)
			waiting = false
		default:
			began := time.Now()
			require.NoError(t, accept(t.Context(), d, rand.Text()))
			_, _, err := d.ReadEvents(t.Context(), engine.Scope{Tenant: tenant}, taskID(1), 0, 10)
			require.ErrorIs(t, err, engine.ErrNotFound)
			require.Less(t, time.Since(began), 2*time.Second, "writers and readers go on")
		}
	}

	require.NoError(t, reader.Rollback(t.Context()))
	require.NoError(t, d.PurgeEvents(t.Context(), later, later))
	require.NotContains(t, partitions(t, d), at.Truncate(6*time.Hour).Format("events_20060102_15"))
}
