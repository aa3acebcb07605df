package launch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

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

// readyInterval is how often a process is asked whether it is ready.
const readyInterval = 20 * time.Millisecond

// program is what a process runs, the same at each start.
type program struct {
	name string
	kind Kind
	path string
	args []string
	// env is added to the launcher's own environment.
	env []string
	// user is whom it runs as; nil stands for the launcher's user.
	user *syscall.Credential
	// ops is the address of its health, readiness and metrics, if it has one.
	ops string
	// ready asks once.
	ready func(ctx context.Context) error
	log   string
}

// Process is one process of the cluster, over all its runs. Where its program
// consists of several processes of the system, as Postgres does, what is done
// to it is done to all of them.
type Process struct {
	program

	logger *slog.Logger
	// started is told of each run.
	started func(p *Process) error

	// commands come one after the other.
	commands sync.Mutex
	last     atomic.Pointer[run]
}

// run is the time from a start to the end.
type run struct {
	cmd *exec.Cmd
	// command is how the system lists it.
	command string
	// asked: somebody wanted it to end.
	asked atomic.Bool
	ended chan struct{}
}

// Name is gateway-0 and so on; there is one postgres and one nats.
func (p *Process) Name() string { return p.name }

// Kind is what the process runs.
func (p *Process) Kind() Kind { return p.kind }

// PID is the id of the last run.
func (p *Process) PID() int { return p.last.Load().cmd.Process.Pid }

// Log is the path of the file with all that its runs have written.
func (p *Process) Log() string { return p.log }

// OpsURL is the root of its health, readiness and metrics, or of the NATS
// server's monitoring; empty for Postgres.
func (p *Process) OpsURL() string {
	if p.ops == "" {
		return ""
	}
	return "http://" + p.ops
}

// Ended is closed when the last run has ended.
func (p *Process) Ended() <-chan struct{} { return p.last.Load().ended }

// Start starts the process again after it has ended, on the same addresses. It
// doesn't wait until it is ready.
func (p *Process) Start(ctx context.Context) error {
	p.commands.Lock()
	defer p.commands.Unlock()
	if r := p.last.Load(); r != nil && r.runs() {
		return fmt.Errorf("start %s: it runs", p.name)
	}
	r, err := p.launch(ctx)
	if err != nil {
		return fmt.Errorf("start %s: %w", p.name, err)
	}
	p.last.Store(r)
	return p.started(p)
}

func (p *Process) launch(ctx context.Context) (*run, error) {
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	r := &run{cmd: exec.Command(p.path, p.args...), ended: make(chan struct{})} // its end is Kill or Terminate
	r.cmd.Env = append(os.Environ(), p.env...)
	r.cmd.Stdout, r.cmd.Stderr = log, log
	// A group of its own, out of the reach of the terminal's signals.
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.user}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go p.watch(r)
	processes, err := systemProcesses(ctx)
	if err != nil {
		// Nobody could tell it from others later.
		return nil, errors.Join(err, r.signal(syscall.SIGKILL))
	}
	r.command = processes[r.cmd.Process.Pid].command
	return r, nil
}

func (p *Process) watch(r *run) {
	err := r.cmd.Wait()
	if !r.asked.Load() {
		p.logger.Warn("a process ended by itself", "process", p.name, "error", err, "log", p.log)
	}
	close(r.ended)
}

func (r *run) runs() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}

// Ready waits until the process is ready, and fails when it ends meanwhile.
func (p *Process) Ready(ctx context.Context) error {
	r := p.last.Load()
	tick := time.NewTicker(readyInterval)
	defer tick.Stop()
	for {
		err := p.ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-r.ended:
			return fmt.Errorf("%s ended before it was ready; the end of its log %s:\n%s", p.name, p.log, tail(p.log))
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready: %w; the end of its log %s:\n%s", p.name, err, p.log, tail(p.log))
		}
	}
}

// tail is the end of what a process has written.
func tail(path string) string {
	const most = 2000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}

// Kill ends the process at once (SIGKILL) and waits until it has gone.
func (p *Process) Kill(ctx context.Context) error {
	return p.command(func(r *run) error {
		r.asked.Store(true)
		if err := killTree(ctx, r.cmd.Process.Pid); err != nil {
			return fmt.Errorf("kill %s: %w", p.name, err)
		}
		<-r.ended
		return nil
	})
}

// Terminate asks the process to end (SIGTERM; a fast shutdown for Postgres) and
// waits until it has gone.
func (p *Process) Terminate(ctx context.Context) error {
	return p.command(func(r *run) error {
		r.asked.Store(true)
		if err := p.resume(ctx, r); err != nil {
			return err
		}
		if err := r.signal(endSignal(p.kind)); err != nil {
			return fmt.Errorf("terminate %s: %w", p.name, err)
		}
		select {
		case <-r.ended:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("terminate %s: %w", p.name, context.Cause(ctx))
		}
	})
}

// endSignal asks for an orderly end. Postgres waits for all clients to leave on
// SIGTERM, and for none on SIGINT.
func endSignal(kind Kind) syscall.Signal {
	if kind == Postgres {
		return syscall.SIGINT
	}
	return syscall.SIGTERM
}

func (r *run) signal(s syscall.Signal) error {
	if err := r.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	return nil
}

// Pause stops the process where it is (SIGSTOP) until Continue.
func (p *Process) Pause(ctx context.Context) error {
	return p.command(func(r *run) error {
		if _, err := freeze(ctx, r.cmd.Process.Pid); err != nil {
			return fmt.Errorf("pause %s: %w", p.name, err)
		}
		return nil
	})
}

// Continue lets a paused process run on (SIGCONT).
func (p *Process) Continue(ctx context.Context) error {
	return p.command(func(r *run) error { return p.resume(ctx, r) })
}

func (p *Process) resume(ctx context.Context, r *run) error {
	if err := thaw(ctx, r.cmd.Process.Pid); err != nil {
		return fmt.Errorf("continue %s: %w", p.name, err)
	}
	return nil
}

// command does something to the run that lasts, after all earlier commands; nothing
// if none does.
func (p *Process) command(do func(r *run) error) error {
	p.commands.Lock()
	defer p.commands.Unlock()
	if r := p.last.Load(); r != nil && r.runs() {
		return do(r)
	}
	return nil
}
