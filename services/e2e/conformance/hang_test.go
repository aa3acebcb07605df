package conformance_test

import (
	"net"
	"net/url"
	"path/filepath"
	"sync"
	"testing"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/errandhq/errand/pkg/testkit"
	"github.com/errandhq/errand/services/e2e/internal/binding"
	"github.com/errandhq/errand/services/e2e/internal/harness"
)

// valve is the way to a server. While it is shut, connections are taken and kept
// and nothing goes through, as behind a process that was stopped.
type valve struct {
	addr string
	flow sync.RWMutex // held while shut
}

// newValve leads to a server until the test ends.
func newValve(t *testing.T, network, target string) *valve {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	v := &valve{addr: listener.Addr().String()}
	var mu sync.Mutex
	var open []net.Conn
	var work sync.WaitGroup
	work.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial(network, target)
			if err != nil {
				_ = client.Close()
				continue
			}
			mu.Lock()
			open = append(open, client, server)
			mu.Unlock()
			work.Go(func() { v.pump(client, server) })
			work.Go(func() { v.pump(server, client) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		mu.Lock()
		for _, c := range open {
			_ = c.Close()
		}
		mu.Unlock()
		work.Wait()
	})
	return v
}

func (v *valve) pump(from, to net.Conn) {
	defer func() { _, _ = from.Close(), to.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		v.flow.RLock()
		_, err = to.Write(buffer[:n])
		v.flow.RUnlock()
		if err != nil {
			return
		}
	}
}

// hung is how long a call may take at most that gets no answer from a service: twice
// the limit of the agents file, on a busy machine.
const hung = 15 * time.Second

// requireBounded wants all operations to be refused in time.
func requireBounded(t *testing.T, all []*caller, id string) {
	t.Helper()
	var calls sync.WaitGroup
	for _, c := range all {
		for op, in := range map[binding.Op]proto.Message{
			binding.SendMessage: say("echo"), binding.GetTask: &a2apb.GetTaskRequest{Id: id},
			binding.ListTasks: &a2apb.ListTasksRequest{}, binding.CancelTask: &a2apb.CancelTaskRequest{Id: id},
		} {
			calls.Go(func() {
				begun := time.Now()
				answer, err := c.Call(t.Context(), op, in)
				if err != nil || answer.Err == nil || answer.Err.Retry() == nil || answer.Err.Reason() != unavailable.reason {
					t.Errorf("%s over %s: want a refusal that says when to come again, got %+v, %v", op, c.Name(), answer, err)
				}
				if took := time.Since(begun); took > hung {
					t.Errorf("%s over %s took %s", op, c.Name(), took)
				}
			})
		}
		for op, in := range map[binding.Op]proto.Message{
			binding.SendStreamingMessage: say("echo"), binding.SubscribeToTask: &a2apb.SubscribeToTaskRequest{Id: id},
		} {
			calls.Go(func() {
				stream, answer, err := c.Open(t.Context(), op, in)
				if stream != nil {
					stream.Close()
				}
				if err != nil || answer == nil || answer.Err.Retry() == nil {
					t.Errorf("%s over %s: want a refusal that says when to come again, got %+v, %v", op, c.Name(), answer, err)
				}
			})
		}
	}
	calls.Wait()
}

// requireWell wants everything to work again, after a while.
func requireWell(t *testing.T, all []*caller) {
	t.Helper()
	for _, c := range all {
		require.Eventually(t, func() bool {
			answer, err := c.Call(t.Context(), binding.SendMessage, say("echo"))
			return err == nil && answer.Err == nil
		}, patience, 100*time.Millisecond, c.Name())
		require.Equal(t, completed, state(c.send(say("echo"))))
	}
}

func TestATaskStoreThatHangsMakesNobodyHang(t *testing.T) {
	t.Parallel()
	cluster := start(t, harness.SQLite, limited("  call: 2s\n"))
	backend := cluster.Backend(t)
	way := newValve(t, "tcp", backend.TaskStoreAddr)
	backend.TaskStoreAddr = way.addr
	edge := &edge{edgePrograms().Start(t, backend), cluster}
	var all []*caller
	for _, b := range edge.Client.Bindings(defaultAgent) {
		all = append(all, &caller{Binding: b, t: t, cluster: cluster, agent: defaultAgent})
	}
	id := all[0].send(say("ask")).GetId()
	way.flow.Lock()
	requireBounded(t, all, id)
	way.flow.Unlock()
	requireWell(t, all)
}

func TestADatabaseThatHangsMakesNobodyHang(t *testing.T) {
	t.Parallel()
	direct, err := url.Parse(testkit.Postgres(t))
	require.NoError(t, err)
	network, target := "tcp", direct.Host
	query := direct.Query()
	if socket := query.Get("host"); socket != "" {
		port := query.Get("port")
		if port == "" {
			port = "5432"
		}
		network, target = "unix", filepath.Join(socket, ".s.PGSQL."+port)
		query.Del("host")
		query.Del("port")
	}
	way := newValve(t, network, target)
	direct.Host, direct.RawQuery = way.addr, query.Encode()
	cluster := start(t, harness.Postgres, limited("  call: 2s\n"), func(o *harness.Options) { o.DatabaseURL = direct.String() })
	all := callers(t, cluster, defaultAgent)
	id := all[0].send(say("ask")).GetId()
	way.flow.Lock()
	requireBounded(t, all, id)
	way.flow.Unlock()
	requireWell(t, all)
}
