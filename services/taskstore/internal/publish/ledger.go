package publish

import "container/list"

// ledger gives out numbers and knows up to which all of them are settled. It is
// guarded by its owner.
type ledger struct {
	// The last number that was given out.
	last int64
	// Numbers that are not settled, as *span, ascending.
	open list.List
}

// span is the numbers of one transaction.
type span struct {
	first, last int64
	// Its transaction is running: it may still commit.
	running bool
	place   *list.Element
}

// take gives out n numbers, n > 0.
func (l *ledger) take(n int) *span {
	s := &span{first: l.last + 1, last: l.last + int64(n), running: true}
	l.last = s.last
	s.place = l.open.PushBack(s)
	return s
}

// settle forgets a span: its events are published, owed to the outbox, or do not
// exist.
func (l *ledger) settle(s *span) { l.open.Remove(s.place) }

// mark is the number up to which everything is settled.
func (l *ledger) mark() int64 {
	if first := l.open.Front(); first != nil {
		return spanOf(first).first - 1
	}
	return l.last
}

// quiet is the number up to which no transaction is running: the outbox is
// complete as far as it goes.
func (l *ledger) quiet() int64 {
	for e := l.open.Front(); e != nil; e = e.Next() {
		if s := spanOf(e); s.running {
			return s.first - 1
		}
	}
	return l.last
}

func spanOf(e *list.Element) *span {
	return e.Value.(*span) //nolint:forcetypeassert // nothing else is in the list
}
