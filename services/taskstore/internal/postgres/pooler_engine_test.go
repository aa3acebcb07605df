package postgres_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/errandhq/errand/services/taskstore/internal/postgres"
	"github.com/stretchr/testify/require"
)

// live takes one task through its life and reads it back in all ways.
func live(t *testing.T, d *database, name string) {
	t.Helper()
	task := queuedTask(now())
	key := engine.DedupeKey{Tenant: tenant, Subject: owner, Agent: agent, MessageID: name}
	artifact := engine.ArtifactKey{TaskID: task.ID, ArtifactID: "a"}
	record := engine.Dedupe{DedupeKey: key, Fingerprint: []byte{1}, TaskID: task.ID, AcceptedVersion: 1, CreatedAt: task.CreatedAt}
	sel := engine.Selection{Reserve: []engine.Dedupe{record}}
	require.NoError(t, d.Update(t.Context(), sel, decideOn(&engine.Changes{
		InsertTasks: []*engine.Task{task},
		Messages:    []engine.Message{{TaskID: task.ID, Version: 1, Kind: engine.MessageUser, Data: []byte("m")}},
		Events:      []engine.Event{event(task, 1, 1)},
	})))
	d.change(t, task.ID, claim)
	sel = selectTasks(task.ID)
	sel.Artifacts = []engine.ArtifactKey{artifact}
	require.NoError(t, d.Update(t.Context(), sel, func(l *engine.Loaded) (*engine.Changes, error) {
		return &engine.Changes{
			UpdateTasks: []engine.TaskUpdate{edited(l.Tasks[task.ID], settle(a2apb.TaskState_TASK_STATE_COMPLETED))},
			Chunks:      []engine.Chunk{{ArtifactKey: artifact, Version: 3, Position: 3, Total: 4, Data: []byte{0, 1, 2, 0xff}}},
		}, nil
	}))

	scope := engine.Scope{Tenant: tenant, Agent: agent, Owner: owner}
	read, err := d.ReadTasks(t.Context(), scope, []string{task.ID}, engine.Detail{History: 5, Artifacts: true})
	require.NoError(t, err)
	require.Len(t, read, 1)
	require.Equal(t, int64(3), read[0].Task.Version)
	require.Equal(t, []byte{0, 1, 2, 0xff}, read[0].Chunks[0].Data)
	listed, err := d.ListTasks(t.Context(), engine.ListQuery{
		Scope: scope, ContextID: "ctx-1", State: read[0].Task.State, StatusSince: task.CreatedAt, Limit: 1000,
		BeforeTime: now().Add(1e9), BeforeID: taskID(0),
	})
	require.NoError(t, err)
	require.NotEmpty(t, listed)
	n, err := d.CountTasks(t.Context(), engine.ListQuery{Scope: scope}, 0)
	require.NoError(t, err)
	require.Positive(t, n, "counted by the planner")
	known, err := d.ReadDedupe(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, record, known)
	_, err = d.Queues(t.Context())
	require.NoError(t, err)
}

func TestTheEngineWorksInEveryExecMode(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"cache_statement", "cache_describe", "describe_exec", "exec", "simple_protocol"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			live(t, openDatabase(t, newURL(t)+"&default_query_exec_mode="+mode), "m")
		})
	}
}

// anyPooler is what the URL of a pooler in transaction mode has to say, with many
// more clients than the pooler has servers.
const anyPooler = "pool_max_conns=50&default_query_exec_mode=cache_describe"

func TestTheEngineWorksBehindATransactionPooler(t *testing.T) {
	t.Parallel()
	p := newTransactionPooler(t, newURL(t), 3)
	d := openDatabase(t, p.url(anyPooler))
	var clients sync.WaitGroup
	for i := range 50 {
		clients.Go(func() { live(t, d, fmt.Sprint("m-", i)) })
	}
	clients.Wait()
	require.NoError(t, d.PurgeEvents(t.Context(), now().Add(1e16), now()))
	require.NoError(t, d.Ping(t.Context()))
}

func TestEachCallCommitsOnceOrMayBeRetriedWhenThePoolerRestarts(t *testing.T) {
	t.Parallel()
	p := newTransactionPooler(t, newURL(t), 3)
	d := openDatabase(t, p.url(anyPooler))
	load(t, d, func() {
		for range 3 {
			more(t, d)
			p.restart(t)
		}
		more(t, d)
	})
}

func TestAPoolerThatLosesPreparedStatementsIsNamed(t *testing.T) {
	t.Parallel()
	d := openDatabase(t, newPooler(t, newURL(t), 3).url(""))
	require.Eventually(t, func() bool { return errors.Is(d.Ping(t.Context()), postgres.ErrPooler) }, time.Minute, time.Millisecond)
}
