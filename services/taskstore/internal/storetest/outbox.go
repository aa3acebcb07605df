package storetest

import (
	"time"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
)

func (f *fixture) outbox(after int64) []int64 {
	f.Helper()
	events, err := f.db.Engine.ReadOutbox(f.Context(), f.sent.name, after, 1000)
	require.NoError(f, err)
	all := []int64{}
	for _, e := range events {
		all = append(all, e.Seq)
	}
	return all
}

var outboxCases = map[string]func(*fixture){
	"every event row carries its publisher's next number": func(f *fixture) {
		c := f.running()
		f.emit(c, chunk("a", "x", false), chunk("a", "y", true))
		require.Equal(f, []int64{1, 2, 3, 4}, f.outbox(0))
		require.Equal(f, []int64{4}, f.outbox(3))
		f.settledReservations()
	},
	"a publisher's mark never falls back and keeps it from being forgotten": func(f *fixture) {
		f.running()
		now := f.clock.Now()
		stale := func() *engine.Publisher {
			found, err := f.db.Engine.StalePublishers(f.Context(), now.Add(time.Millisecond))
			require.NoError(f, err)
			for _, p := range found {
				if p.ID == f.sent.name {
					return &p
				}
			}
			return nil
		}
		require.NoError(f, f.db.Engine.BeatPublisher(f.Context(), f.sent.name, 1, now))
		require.Equal(f, &engine.Publisher{ID: f.sent.name, Through: 1, BeatAt: now}, stale())
		require.NoError(f, f.db.Engine.DropPublisher(f.Context(), f.sent.name))
		require.NotNil(f, stale(), "one event is not published yet")
		require.NoError(f, f.db.Engine.AdvancePublisher(f.Context(), f.sent.name, 2))
		require.NoError(f, f.db.Engine.AdvancePublisher(f.Context(), f.sent.name, 1))
		require.EqualValues(f, 2, stale().Through)
		require.NoError(f, f.db.Engine.BeatPublisher(f.Context(), f.sent.name, 0, now.Add(time.Second)))
		require.Nil(f, stale())
		require.NoError(f, f.db.Engine.DropPublisher(f.Context(), f.sent.name))
		now = now.Add(time.Hour)
		require.Nil(f, stale())
	},
	"the lag counts what is not known to be published": func(f *fixture) {
		require.NoError(f, f.db.Engine.BeatPublisher(f.Context(), f.sent.name, 0, f.clock.Now()))
		f.running()
		lag, oldest, err := f.db.Engine.OutboxLag(f.Context(), 1)
		require.NoError(f, err)
		require.Equal(f, 1, lag, "up to the bound")
		require.False(f, oldest.IsZero())
	},
}
