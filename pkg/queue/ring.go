package queue

import (
	"container/heap"
	"sync"
	"time"
)

// stride is how far a tenant of weight 1 moves back with each message; a weight
// divides it.
const stride = 1 << 20

// maxWeight keeps strides above zero.
const maxWeight = 1 << 10

// ring decides whom to ask next. It knows the hot tenants, those that may have
// work, and shares out free slots by stride scheduling: each tenant has a pass,
// the lowest is next, and a message moves the pass back by stride/weight. A
// tenant that becomes hot starts where the ring is, so that neither newcomers
// nor old ones can save up turns.
type ring struct {
	weight func(tenant string) int

	mu      sync.Mutex
	tenants map[string]*ringEntry // hot, or being asked
	hot     ringHeap
	pass    int64 // of the tenant that was last asked
	// changed is signalled when a tenant becomes hot.
	changed chan struct{}
}

type ringEntry struct {
	tenant string
	stride int64
	pass   int64
	place  int // in the heap; -1 while being asked, and before being asked again
	asked  int // for how many messages
	// marked says that work came while the tenant was being asked.
	marked bool

	// The highest stream sequences that wake-ups told of and that were received.
	expected, received uint64
	retries            int
}

// retryDelays are the pauses after which a tenant is asked again that answered
// with less than a wake-up told of. The stream acknowledges a message a moment
// before its consumers know of it, so the first answer may be too early; or
// another executor has the message, which is why it is not asked for long.
var retryDelays = [...]time.Duration{2 * time.Millisecond, 20 * time.Millisecond}

// share is a tenant to ask, and for how many messages.
type share struct {
	tenant string
	count  int
	entry  *ringEntry
}

func newRing(weight func(tenant string) int) *ring {
	return &ring{weight: weight, tenants: map[string]*ringEntry{}, changed: make(chan struct{}, 1)}
}

// mark says that a tenant may have work, up to a stream sequence if that is
// known, else 0.
func (r *ring) mark(tenant string, sequence uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.tenants[tenant]
	if !ok {
		e = r.newEntry(tenant)
		r.tenants[tenant] = e
	}
	e.expected = max(e.expected, sequence)
	e.retries = 0
	switch {
	case e.asked > 0:
		e.marked = true
	case e.place < 0:
		r.push(e)
	}
}

func (r *ring) newEntry(tenant string) *ringEntry {
	e := &ringEntry{tenant: tenant, stride: stride, pass: r.pass, place: -1}
	if r.weight != nil {
		e.stride = stride / int64(min(max(r.weight(tenant), 1), maxWeight))
	}
	return e
}

// take shares n slots among the hot tenants. Until done is called for a share,
// its tenant is not given out again.
func (r *ring) take(n int) []share {
	r.mu.Lock()
	defer r.mu.Unlock()
	var asked []*ringEntry
	for range n {
		if len(r.hot) == 0 {
			break
		}
		e := r.hot[0]
		if e.asked == 0 {
			asked = append(asked, e)
		}
		e.asked++
		r.pass = e.pass
		e.pass += e.stride
		heap.Fix(&r.hot, 0)
	}
	shares := make([]share, len(asked))
	for i, e := range asked {
		heap.Remove(&r.hot, e.place)
		shares[i] = share{tenant: e.tenant, count: e.asked, entry: e}
	}
	return shares
}

// done gives a share back, with the number of messages that came and the highest
// sequence among them. A tenant that had less than it was asked for goes cold,
// unless more is known to be there.
func (r *ring) done(s share, got int, sequence uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e := s.entry
	e.pass -= e.stride * int64(s.count-got)
	e.received = max(e.received, sequence)
	marked := e.marked
	e.asked, e.marked = 0, false
	switch {
	case marked || got == s.count:
		r.push(e)
	case e.received < e.expected && e.retries < len(retryDelays):
		time.AfterFunc(retryDelays[e.retries], func() { r.retry(e) })
		e.retries++
	default:
		delete(r.tenants, e.tenant)
	}
}

func (r *ring) retry(e *ringEntry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tenants[e.tenant] == e && e.asked == 0 && e.place < 0 {
		r.push(e)
	}
}

func (r *ring) push(e *ringEntry) {
	heap.Push(&r.hot, e)
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// ringHeap is a heap of the hot tenants by pass.
type ringHeap []*ringEntry

func (h *ringHeap) Len() int           { return len(*h) }
func (h *ringHeap) Less(i, j int) bool { return (*h)[i].pass < (*h)[j].pass }

func (h *ringHeap) Swap(i, j int) {
	s := *h
	s[i], s[j] = s[j], s[i]
	s[i].place, s[j].place = i, j
}

func (h *ringHeap) Push(x any) {
	e := x.(*ringEntry) //nolint:forcetypeassert // only entries are pushed
	e.place = len(*h)
	*h = append(*h, e)
}

func (h *ringHeap) Pop() any {
	old := *h
	e := old[len(old)-1]
	e.place = -1
	*h = old[:len(old)-1]
	return e
}
