// Package batch lets calls that wait at the same time share one flush. A call
// that finds nothing running is flushed at once and alone; those that come while
// a flush runs wait together for the next one.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"
)

var (
	// ErrFull refuses an item because too many wait.
	ErrFull = errors.New("too many changes are waiting")
	// ErrClosed refuses an item after Close.
	ErrClosed = errors.New("no more changes are taken")
)

// Item is something to flush.
type Item interface {
	// Keys name what the item needs for itself: items that share a key are never
	// in flushes at the same time, and keep their order. Keys are comparable.
	Keys() []any
	// Size is how many bytes the item is worth, roughly.
	Size() int
}

// Options bound a batcher. All fields but Split are positive.
type Options struct {
	// Flushes that run at the same time.
	Parallel int
	// Items and bytes of one flush; a single item may be larger.
	Items int
	Bytes int
	// Items that wait, and their bytes; more are refused with ErrFull, unless nothing
	// waits.
	Waiting      int
	WaitingBytes int
	// How long a flush may take.
	Timeout time.Duration
	// Split tells whether the items of a flush that failed with this error are
	// worth trying one by one, so that one of them can't spoil the others or hold
	// them up. The error must be known to have changed nothing.
	Split func(error) bool
}

// Batcher groups items. Its methods are safe for concurrent use.
type Batcher[T Item] struct {
	options Options
	flush   func(ctx context.Context, items []T) error

	mu      sync.Mutex
	waiting []*entry[T]
	bytes   int // of waiting
	running int
	busy    map[any]struct{}
	closed  bool
	flushes sync.WaitGroup
}

// entry is an item that waits or is being flushed. Once done is closed the item
// is its caller's again.
type entry[T Item] struct {
	ctx  context.Context
	item T
	keys []any
	size int
	// Set once it failed together with others.
	alone bool
	done  chan struct{}
	err   error
}

// New returns a batcher that hands items to flush. The context of a flush ends
// with the options' timeout and not with any caller's; its values are those of
// the first item's caller, and [Callers] has the others'.
func New[T Item](options Options, flush func(ctx context.Context, items []T) error) *Batcher[T] {
	return &Batcher[T]{options: options, flush: flush, busy: map[any]struct{}{}}
}

// Do hands over items and waits until they are flushed, with one error for each.
// When ctx ends first, items that still wait are taken back; one whose flush has
// begun is flushed nevertheless, since others may share it.
func (b *Batcher[T]) Do(ctx context.Context, items ...T) []error {
	errs := make([]error, len(items))
	entries, err := b.enqueue(ctx, items)
	for i := range errs {
		if err != nil {
			errs[i] = err
			continue
		}
		select {
		case <-entries[i].done:
			errs[i] = entries[i].err
		case <-ctx.Done():
			errs[i] = context.Cause(ctx)
		}
	}
	return errs
}

// Waiting tells how many items wait for a flush.
func (b *Batcher[T]) Waiting() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.waiting)
}

// Close refuses new items and waits until those that were taken are flushed.
func (b *Batcher[T]) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.flushes.Wait()
}

func (b *Batcher[T]) enqueue(ctx context.Context, items []T) ([]*entry[T], error) {
	entries := newEntries(ctx, items)
	bytes := sizeOf(entries)
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return nil, ErrClosed
	case !b.hasRoom(len(items), bytes):
		return nil, ErrFull
	}
	b.waiting = append(b.waiting, entries...)
	b.bytes += bytes
	b.dispatch()
	return entries, nil
}

func newEntries[T Item](ctx context.Context, items []T) []*entry[T] {
	entries := make([]*entry[T], len(items))
	for i, item := range items {
		entries[i] = &entry[T]{ctx: ctx, item: item, keys: item.Keys(), size: item.Size(), done: make(chan struct{})}
	}
	return entries
}

func sizeOf[T Item](entries []*entry[T]) int {
	bytes := 0
	for _, e := range entries {
		bytes += e.size
	}
	return bytes
}

// hasRoom tells whether so much more may wait. The lock is held.
func (b *Batcher[T]) hasRoom(items, bytes int) bool {
	if len(b.waiting)+items > b.options.Waiting {
		return false
	}
	return len(b.waiting) == 0 || b.bytes+bytes <= b.options.WaitingBytes
}

// dispatch starts flushes. The lock is held.
func (b *Batcher[T]) dispatch() {
	for b.running < b.options.Parallel {
		next := b.take()
		if len(next) == 0 {
			return
		}
		b.running++
		b.flushes.Go(func() { b.run(next) })
	}
}

// take removes from the queue what may be flushed next, oldest first. An item
// that must wait keeps its keys from those behind it.
func (b *Batcher[T]) take() []*entry[T] {
	var next []*entry[T]
	blocked := map[any]struct{}{}
	bytes := 0
	rest := b.waiting[:0]
	for i, e := range b.waiting {
		if e.ctx.Err() != nil {
			continue
		}
		if len(next) > 0 && b.full(len(next), bytes, e) {
			rest = append(rest, b.waiting[i:]...)
			break
		}
		if b.holds(e.keys, blocked) {
			rest = append(rest, e)
			continue
		}
		next = append(next, e)
		bytes += e.size
		if e.alone {
			rest = append(rest, b.waiting[i+1:]...)
			break
		}
	}
	clear(b.waiting[len(rest):])
	b.waiting = rest
	b.bytes = sizeOf(rest)
	for _, e := range next {
		for _, k := range e.keys {
			b.busy[k] = struct{}{}
		}
	}
	return next
}

// full tells whether a flush has no room for another item.
func (b *Batcher[T]) full(items, bytes int, e *entry[T]) bool {
	return e.alone || items == b.options.Items || bytes+e.size > b.options.Bytes
}

// holds tells whether a key is taken by a running flush or by an item before;
// from then on all keys are.
func (b *Batcher[T]) holds(keys []any, blocked map[any]struct{}) bool {
	held := false
	for _, k := range keys {
		_, running := b.busy[k]
		_, before := blocked[k]
		held = held || running || before
	}
	for _, k := range keys {
		blocked[k] = struct{}{}
	}
	return held
}

func (b *Batcher[T]) run(entries []*entry[T]) {
	err := b.flushOnce(entries)
	split := err != nil && len(entries) > 1 && b.options.Split(err)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running--
	if split {
		b.putBack(entries)
	} else {
		finish(entries, err)
	}
	for _, e := range entries {
		for _, k := range e.keys {
			delete(b.busy, k)
		}
	}
	b.dispatch()
}

// putBack makes items wait again, each for a flush of its own, before all others.
// The lock is held.
func (b *Batcher[T]) putBack(entries []*entry[T]) {
	for _, e := range entries {
		e.alone = true
	}
	b.waiting = append(entries, b.waiting...)
}

func finish[T Item](entries []*entry[T], err error) {
	for _, e := range entries {
		e.err = err
		close(e.done)
	}
}

// flushOnce makes an error of a panic: it belongs to one of the items, and the
// others must not go down with it.
func (b *Batcher[T]) flushOnce(entries []*entry[T]) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	items := make([]T, len(entries))
	callers := make([]context.Context, len(entries))
	for i, e := range entries {
		items[i], callers[i] = e.item, e.ctx
	}
	ctx := context.WithValue(context.WithoutCancel(entries[0].ctx), callersKey{}, callers)
	ctx, cancel := context.WithTimeout(ctx, b.options.Timeout)
	defer cancel()
	return b.flush(ctx, items)
}

type callersKey struct{}

// Callers is the contexts of all calls that share the flush of ctx, one for each
// item; nil outside a flush.
func Callers(ctx context.Context) []context.Context {
	callers, _ := ctx.Value(callersKey{}).([]context.Context)
	return callers
}
