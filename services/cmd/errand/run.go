package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

// commands is the command line; each command has a file of its own.
type commands struct {
	Dev       devCommand       `cmd:"" help:"Run all of Errand in this process."`
	Send      sendCommand      `cmd:"" help:"Send a message and wait for what comes of it."`
	Stream    streamCommand    `cmd:"" help:"Send a message and print what happens as it happens."`
	Get       getCommand       `cmd:"" help:"Show a task."`
	List      listCommand      `cmd:"" help:"List tasks, the ones that changed last first."`
	Cancel    cancelCommand    `cmd:"" help:"Cancel a task."`
	Subscribe subscribeCommand `cmd:"" help:"Follow a task until it ends."`
	Card      cardCommand      `cmd:"" help:"Show the agent's card."`
	Admin     adminCommand     `cmd:"" help:"For operators: what the cluster gave up."`
}

const description = `Send messages to A2A agents and follow their tasks.

Exit codes: 0 done, or waiting for you; 1 the command failed; 2 it was not understood; of send, stream and subscribe also 3 the task failed,
4 it was rejected, 5 it was canceled; 130 interrupted, the task goes on.`

// Exit codes.
const (
	exitFailed      = 1
	exitUsage       = 2
	exitTaskFailed  = 3
	exitRejected    = 4
	exitCanceled    = 5
	exitInterrupted = 130
)

// exitError ends the program without another word: the command has said it all.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// run is the program with everything from outside passed in. The first interrupt
// ends the command, the second the process.
func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	return runContext(ctx, args, newConsole(stdin, stdout, stderr))
}

func runContext(ctx context.Context, args []string, c *console) (code int) {
	defer func() {
		// Kong exits after it has printed help.
		switch cause := recover().(type) {
		case nil:
		case exitError:
			code = int(cause)
		default:
			panic(cause)
		}
	}()
	parser, err := kong.New(&commands{},
		kong.Name("errand"), kong.Description(description), kong.Writers(c.out, c.err),
		kong.Exit(func(code int) { panic(exitError(code)) }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(c),
	)
	if err != nil {
		return c.fail(exitFailed, err)
	}
	command, err := parser.Parse(args)
	if err != nil {
		return c.fail(exitUsage, fmt.Errorf("%w (errand --help shows what there is)", err))
	}
	defer c.endLine()
	return c.exit(ctx, command.Run())
}

// exit says why a command ended, unless it has done so itself.
func (c *console) exit(ctx context.Context, err error) int {
	if code, ok := errors.AsType[exitError](err); ok {
		return int(code)
	}
	switch {
	case err == nil:
		return 0
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return c.fail(exitFailed, err)
}
