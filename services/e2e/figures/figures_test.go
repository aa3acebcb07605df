// Package figures_test measures Errand as a user runs it: the errand binary as a
// process of its own, called over HTTP+JSON, on SQLite and on Postgres.
//
//	deploy/postgres/with-test-postgres go test -run '^$' -bench . ./services/e2e/figures
//
// prints a table at its end. The script gives Postgres its default durability,
// which the databases of tests do without.
package figures_test

import (
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

const (
	callers     = 32
	subscribers = 1000
)

func TestMain(m *testing.M) {
	code := m.Run()
	figures.print(os.Stdout)
	os.Exit(code)
}

// engines are the arguments that put `errand dev` on each database.
var engines = []struct {
	name      string
	arguments func(b *testing.B) []string
}{
	{"SQLite", func(*testing.B) []string { return nil }},
	{"Postgres", func(b *testing.B) []string {
		b.Helper()
		return []string{"--database-url", testkit.Postgres(b)}
	}},
}

// each measures on a fresh process for each database.
func each(b *testing.B, measure func(b *testing.B, engine string, p *harness.Dev)) {
	b.Helper()
	binary := harness.BuildErrand(b)
	for _, engine := range engines {
		b.Run(engine.name, func(b *testing.B) {
			args := append(engine.arguments(b), "--data-dir", b.TempDir())
			measure(b, engine.name, harness.StartDev(b, binary, args...))
		})
	}
}

// BenchmarkEchoIdle is one blocking echo at a time.
func BenchmarkEchoIdle(b *testing.B) {
	each(b, func(b *testing.B, engine string, p *harness.Dev) {
		rest := p.Client.Bindings("")[1]
		send(b, rest, "echo") // connects, and prepares statements
		var took []time.Duration
		for b.Loop() {
			begun := time.Now()
			send(b, rest, "echo")
			took = append(took, time.Since(begun))
		}
		slices.Sort(took)
		p50, p99 := took[len(took)/2], took[len(took)*99/100]
		b.ReportMetric(float64(p50)/1e6, "p50-ms")
		b.ReportMetric(float64(p99)/1e6, "p99-ms")
		figures.set("blocking echo, idle, p50", engine, "%.2f ms", float64(p50)/1e6)
		figures.set("blocking echo, idle, p99", engine, "%.2f ms", float64(p99)/1e6)
	})
}

// BenchmarkEchoBusy is 32 callers, each with one blocking echo at a time.
func BenchmarkEchoBusy(b *testing.B) {
	each(b, func(b *testing.B, engine string, p *harness.Dev) {
		rest := p.Client.Bindings("")[1]
		send(b, rest, "echo")
		tokens := make(chan struct{})
		var work sync.WaitGroup
		for range callers {
			work.Go(func() {
				for range tokens {
					send(b, rest, "echo")
				}
			})
		}
		begun := time.Now()
		for b.Loop() {
			tokens <- struct{}{}
		}
		close(tokens)
		work.Wait()
		rate := float64(b.N) / time.Since(begun).Seconds()
		b.ReportMetric(rate, "tasks/s")
		figures.set(fmt.Sprintf("blocking echo, %d callers", callers), engine, "%.0f tasks/s", rate)
	})
}

// BenchmarkMemory reads what the kernel counts of the process: at start, and
// with many idle subscribers, each of a task of its own.
func BenchmarkMemory(b *testing.B) {
	each(b, func(b *testing.B, engine string, p *harness.Dev) {
		atStart := residentKiB(b, p.PID())
		rest := p.Client.Bindings("")[1]
		ids := make([]string, subscribers)
		for i := range ids {
			ids[i] = send(b, rest, "ask")
		}
		before := residentKiB(b, p.PID())
		for _, id := range ids {
			s, answer, err := rest.Open(b.Context(), binding.SubscribeToTask, &a2apb.SubscribeToTaskRequest{Id: id})
			require.NoError(b, err)
			require.NotNil(b, s, "%v", answer)
			defer s.Close()
			_, err = s.Next()
			require.NoError(b, err)
		}
		perSubscriber := float64(residentKiB(b, p.PID())-before) / subscribers
		for b.Loop() {
		}
		b.ReportMetric(float64(atStart)/1024, "start-MiB")
		b.ReportMetric(perSubscriber, "KiB/subscriber")
		figures.set("memory at start", engine, "%.0f MiB", float64(atStart)/1024)
		figures.set("memory per idle subscriber", engine, "%.0f KiB", perSubscriber)
	})
}

// send wants a task and returns its id.
func send(b *testing.B, rest binding.Binding, text string) string {
	b.Helper()
	answer, err := rest.Call(b.Context(), binding.SendMessage, &a2apb.SendMessageRequest{Message: &a2apb.Message{
		MessageId: uuid.NewString(), Role: a2apb.Role_ROLE_USER,
		Parts: []*a2apb.Part{{Content: &a2apb.Part_Text{Text: text}}},
	}})
	if err != nil || answer.Err != nil {
		b.Errorf("send: %v %v", err, answer)
		return ""
	}
	return answer.Result.(*a2apb.SendMessageResponse).GetTask().GetId()
}
