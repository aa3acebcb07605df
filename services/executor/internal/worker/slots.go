package worker

import "context"

// slots bounds how many turns run at the same time.
type slots chan struct{}

func newSlots(n int) slots { return make(slots, n) }

// take waits for a free slot and takes all that are free.
func (s slots) take(ctx context.Context) (int, error) {
	select {
	case s <- struct{}{}:
	case <-ctx.Done():
		return 0, context.Cause(ctx)
	}
	for n := 1; ; n++ {
		select {
		case s <- struct{}{}:
		default:
			return n, nil
		}
	}
}

func (s slots) free(n int) {
	for range n {
		<-s
	}
}
