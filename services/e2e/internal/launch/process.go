package launch

import "context"

// Kind is what a process runs.
type Kind string

// The kinds of processes.
const (
	Gateway   Kind = "gateway"
	TaskStore Kind = "taskstore"
	Notifier  Kind = "notifier"
	Executor  Kind = "executor"
	Postgres  Kind = "postgres"
	NATS      Kind = "nats"
)

// Process is one process of the cluster, over all its runs. Where its program
// consists of several processes of the system, as Postgres does, what is done
// to it is done to all of them.
type Process struct{}

// Name is gateway-0 and so on; there is one postgres and one nats.
func (p *Process) Name() string { return "" }

// Kind is what the process runs.
func (p *Process) Kind() Kind { return "" }

// PID is the id of the last run.
func (p *Process) PID() int { return 0 }

// Log is the path of the file with all that its runs have written.
func (p *Process) Log() string { return "" }

// OpsURL is the root of its health, readiness and metrics, or of the NATS
// server's monitoring; empty for Postgres.
func (p *Process) OpsURL() string { return "" }

// Kill ends the process at once (SIGKILL) and waits until it has gone.
func (p *Process) Kill(ctx context.Context) error { _ = ctx; return nil }

// Terminate asks the process to end (SIGTERM; a fast shutdown for Postgres) and
// waits until it has gone.
func (p *Process) Terminate(ctx context.Context) error { _ = ctx; return nil }

// Pause stops the process where it is (SIGSTOP) until Continue.
func (p *Process) Pause() error { return nil }

// Continue lets a paused process run on (SIGCONT).
func (p *Process) Continue() error { return nil }

// Start starts the process again after it has ended, on the same addresses. It
// doesn't wait until it is ready.
func (p *Process) Start(ctx context.Context) error { _ = ctx; return nil }

// Ready waits until the process is ready, and fails when it ends meanwhile.
func (p *Process) Ready(ctx context.Context) error { _ = ctx; return nil }

// Ended is closed when the last run has ended.
func (p *Process) Ended() <-chan struct{} { return nil }
