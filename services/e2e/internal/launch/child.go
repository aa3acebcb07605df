package launch

import "log/slog"

// Program is what a process beside a cluster runs, the same at each start.
type Program struct {
	// Path is the binary.
	Path string
	Args []string
	// Env is added to the environment of whoever starts it.
	Env []string
	// Ready is a URL that answers 200 while the process is ready.
	Ready string
	// Log is the path of a file that gets all that its runs write.
	Log string
}

// NewProcess is a process that belongs to no cluster: who starts it ends it.
func NewProcess(p Program) *Process {
	return &Process{
		program: program{name: p.Path, path: p.Path, args: p.Args, env: p.Env, ready: answers(p.Ready), log: p.Log},
		logger:  slog.New(slog.DiscardHandler),
		started: func(*Process) error { return nil },
	}
}
