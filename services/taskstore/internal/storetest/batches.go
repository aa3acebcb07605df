package storetest

import (
	"context"
	"sync"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/task"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

var batchCases = map[string]func(*fixture){
	"many messages in one call are answered one by one": func(f *fixture) {
		parked, finished := f.settled(task.InputRequired).GetTask().GetId(), f.settled(task.Completed).GetTask().GetId()
		twice := f.request(f.newMessage("twice"))
		again := proto.CloneOf(twice)
		again.NewTaskId = task.NewID()
		results := f.store.AcceptMessages(f.Context(), []*taskstorev1.AcceptMessageRequest{
			f.request(f.newMessage("new")),
			f.followUp(parked, "answer"),
			f.followUp(finished, "late"),
			{},
			twice,
			f.followUp(task.NewID(), "lost"),
			again,
			f.followUp(parked, "and more"),
		})
		for _, i := range []int{0, 1, 4, 6, 7} {
			require.NoError(f, results[i].Err, i)
		}
		f.refused(results[2].Err, a2aerr.ReasonUnsupportedOperation)
		f.refused(results[3].Err, a2aerr.ReasonInvalidParams)
		f.refused(results[5].Err, a2aerr.ReasonTaskNotFound)
		require.False(f, results[4].Value.GetDuplicate())
		require.True(f, results[6].Value.GetDuplicate())
		require.Equal(f, results[4].Value.GetTask().GetId(), results[6].Value.GetTask().GetId())
		require.Equal(f, results[1].Value.GetAcceptedVersion()+1, results[7].Value.GetAcceptedVersion(), "changes of one task keep their order")
	},
	"messages of one context share a transaction": func(f *fixture) {
		var requests []*taskstorev1.AcceptMessageRequest
		for range 5 {
			m := f.newMessage("hi")
			m.ContextId = "c1"
			requests = append(requests, f.request(m))
		}
		f.store.AcceptMessages(f.Context(), requests[:1])
		counting := &countingEngine{Engine: f.db.Engine}
		f.store = f.newStore(counting)
		for i, r := range f.store.AcceptMessages(f.Context(), requests) {
			require.NoError(f, r.Err, i)
		}
		require.Equal(f, 1, counting.touched(), "the context is touched once")
	},
	"a change that the database refuses does not spoil the others": func(f *fixture) {
		taken := f.request(f.newMessage("taken"))
		f.accept(taken)
		bad := f.request(f.newMessage("bad"))
		bad.NewTaskId = taken.GetNewTaskId()
		requests := []*taskstorev1.AcceptMessageRequest{bad}
		for range 10 {
			requests = append(requests, f.request(f.newMessage("good")))
		}
		results := f.store.AcceptMessages(f.Context(), requests)
		f.refused(results[0].Err, a2aerr.ReasonInternalError)
		for i, r := range results[1:] {
			require.NoError(f, r.Err, i)
		}
		bad.NewTaskId = task.NewID()
		require.False(f, f.accept(bad).GetDuplicate(), "what failed is not remembered")
		f.settledReservations()
	},
	"all kinds of changes that wait share a transaction": func(f *fixture) {
		gate := &gatedEngine{Engine: f.db.Engine, entered: make(chan struct{}), open: make(chan struct{})}
		running, queued, parked := f.running(), f.start("go"), f.settled(task.InputRequired).GetTask().GetId()
		doomed := f.start("go")
		one := f.db
		one.Parallel = 1
		f.db, one = one, f.db
		f.store = f.newStore(gate)
		f.db = one
		var group sync.WaitGroup
		group.Go(func() { f.accept(f.request(f.newMessage("first"))) })
		<-gate.entered
		for _, do := range []func(){
			func() { f.accept(f.request(f.newMessage("second"))) },
			func() { f.accept(f.followUp(parked, "yes")) },
			func() { f.claim(queued) },
			func() { f.emit(running, chunk("a", "x", false)) },
			func() { f.cancel(doomed) },
			func() { _, _ = f.putContext("c1", "x", 0) },
			func() { f.reply(f.replyTo(f.newMessage("hi"), "hello")) },
		} {
			group.Go(do)
		}
		require.Eventually(f, func() bool { return f.store.Waiting() == 7 }, waitLong, waitStep)
		close(gate.open)
		group.Wait()
		require.Equal(f, 2, gate.updates)
		f.settledReservations()
	},
	"a caller that gives up does not undo what others share": func(f *fixture) {
		gate := &gatedEngine{Engine: f.db.Engine, entered: make(chan struct{}), open: make(chan struct{})}
		f.store = f.newStore(gate)
		ctx, cancel := context.WithCancel(f.Context())
		r := f.request(f.newMessage("impatient"))
		var err error
		var group sync.WaitGroup
		group.Go(func() { err = f.store.AcceptMessages(ctx, []*taskstorev1.AcceptMessageRequest{r})[0].Err })
		<-gate.entered
		cancel()
		group.Wait()
		require.ErrorIs(f, err, context.Canceled)
		close(gate.open)
		require.True(f, f.accept(r).GetDuplicate(), "the change was made")
	},
	"a closed store takes nothing more": func(f *fixture) {
		f.store.Close()
		_, err := f.tryAccept(f.request(f.newMessage("late")))
		require.Error(f, err)
	},
}

// settledReservations requires that every number that was taken for events was
// either used or given back.
func (f *fixture) settledReservations() {
	f.Helper()
	f.sent.mu.Lock()
	defer f.sent.mu.Unlock()
	require.Equal(f, f.sent.reserved, f.sent.settled)
}

// gatedEngine holds its first update until it is opened.
type gatedEngine struct {
	engine.Engine
	entered, open chan struct{}

	once    sync.Once
	mu      sync.Mutex
	updates int
}

// Update implements engine.Writer.
func (e *gatedEngine) Update(
	ctx context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error),
) error {
	e.mu.Lock()
	e.updates++
	e.mu.Unlock()
	e.once.Do(func() {
		close(e.entered)
		<-e.open
	})
	return e.Engine.Update(ctx, sel, decide)
}
