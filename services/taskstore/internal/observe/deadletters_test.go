package observe_test

import (
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/errandhq/errand/pkg/telemetry"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
)

// counts reads the value of a counter for each set of its attributes.
func (b *bundle) counts(t *testing.T, name string) map[attribute.Set]int64 {
	t.Helper()
	var all metricdata.ResourceMetrics
	require.NoError(t, b.meters.Collect(t.Context(), &all))
	counts := map[attribute.Set]int64{}
	for _, m := range all.ScopeMetrics[0].Metrics {
		if m.Name != name {
			continue
		}
		data, ok := m.Data.(metricdata.Sum[int64])
		require.True(t, ok)
		for _, p := range data.DataPoints {
			counts[p.Attributes] = p.Value
		}
	}
	return counts
}

func TestDeadLettersAreCountedByAgentAndReasonAndLoggedWithTheirIDs(t *testing.T) {
	t.Parallel()
	dead := engine.DeadLetter{
		TaskID: "t-1", Tenant: "acme", Agent: "ledger", ContextID: "c-1", Reason: "max_attempts", Attempts: 3, LastHolder: "e-1",
	}
	redriven := dead
	redriven.Redrive = engine.Redrive{TaskID: "t-2", By: "ops"}
	b := observed(t, stub{retry: true})
	require.NoError(t, b.Update(t.Context(), engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) {
		return &engine.Changes{DeadLetters: []engine.DeadLetter{dead}, RedriveDeadLetters: []engine.DeadLetter{redriven}}, nil
	}))
	labels := attribute.NewSet(attribute.String(telemetry.AttrAgent, "ledger"), attribute.String(telemetry.AttrReason, "max_attempts"))
	require.Equal(t, map[attribute.Set]int64{labels: 1}, b.counts(t, telemetry.MetricDeadLetters), "once, though decided twice")
	require.Equal(t, map[attribute.Set]int64{labels: 1}, b.counts(t, telemetry.MetricRedriven))

	var lines []map[string]any
	for line := range strings.Lines(b.log.String()) {
		var fields map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &fields))
		delete(fields, "time")
		lines = append(lines, fields)
	}
	ids := func(more map[string]any) map[string]any {
		maps.Copy(more, map[string]any{
			"task_id": "t-1", "context_id": "c-1", "tenant": "acme", "agent": "ledger", "reason": "max_attempts",
		})
		return more
	}
	require.Equal(t, []map[string]any{
		ids(map[string]any{"level": "WARN", "msg": "task given up", "attempts": 3.0, "holder": "e-1"}),
		ids(map[string]any{"level": "INFO", "msg": "dead letter redriven", "new_task_id": "t-2", "by": "ops"}),
	}, lines)
}

func TestADeadLetterThatWasNotCommittedIsNotCounted(t *testing.T) {
	t.Parallel()
	b := observed(t, stub{err: errors.New("broken")})
	require.Error(t, b.Update(t.Context(), engine.Selection{}, func(*engine.Loaded) (*engine.Changes, error) {
		return &engine.Changes{DeadLetters: []engine.DeadLetter{{TaskID: "t-1"}}}, nil
	}))
	require.Empty(t, b.counts(t, telemetry.MetricDeadLetters))
	require.Empty(t, b.log.String())
}
