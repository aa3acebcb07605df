package notifier_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A watch that waits costs memory on both ends of its NATS subscription; client
// and server are in this process.
func TestIdleWatchIsCheap(t *testing.T) { // Alone: it measures the heap of the process.
	const watches, limit = 5000, 2 << 10
	b := setup(t, time.Hour)
	s := b.open()
	b.store.commit("warm", working)
	s.begin(0, "warm")
	ids := make([]string, watches)
	for i := range ids {
		ids[i] = fmt.Sprintf("01890000-0000-7000-8000-%012d", i)
		b.store.commit(ids[i], working)
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	for i, id := range ids {
		s.watch(uint64(i)+1, id, -1)
	}
	for range watches {
		require.NotNil(t, s.next().GetWatching())
	}
	perWatch := (heap() - before) / watches
	t.Logf("%d bytes for each watch", perWatch)
	require.Less(t, perWatch, int64(limit))
	require.Less(t, runtime.NumGoroutine(), goroutines+100)
}

func heap() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// A short task is watched, becomes terminal by one event, and is forgotten.
func BenchmarkShortTask(b *testing.B) {
	bundle := setup(b, time.Hour)
	s := bundle.open()
	const inFlight = 256
	slots := make(chan struct{}, inFlight)
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for done := 0; done < b.N; {
			if s.next().GetEvent() != nil {
				done++
				<-slots
			}
		}
	}()
	b.ResetTimer()
	for i := range b.N {
		slots <- struct{}{}
		id := fmt.Sprintf("01890000-0000-7000-8000-%012d", i)
		bundle.store.commit(id, working)
		s.watch(uint64(i), id, 1)
		bundle.publish(bundle.store.commit(id, completed))
	}
	<-finished
}
