// Package agent is what the author of an agent writes against. An [Agent] is a
// name and the code that runs behind it: a [Handler] for tasks and, for agents
// that also answer without a task, a [MessageHandler]. Package executor of the
// services module makes a program of one or more agents.
//
// # Tasks
//
// A handler is called with a [Task]: who asks, what was said so far, what the
// agent remembers. It emits artifacts and progress, and settles the turn:
//
//	func handle(ctx context.Context, t *agent.Task) error {
//		answer, err := think(ctx, agent.TextOf(t.Message().GetMessage()))
//		if err != nil {
//			return err
//		}
//		if err := t.Emit(ctx, &a2apb.Artifact{Name: "answer", Parts: []*a2apb.Part{agent.Text(answer)}}); err != nil {
//			return err
//		}
//		return t.Complete(ctx)
//	}
//
// A turn is settled by [Task.Complete], [Task.Reject], [Task.Fail],
// [Task.AskInput] or [Task.AskAuth]. Asking parks the task: the handler
// returns, nothing is held while the sender thinks, and the handler runs again
// on the answer, maybe days later and in another process. A handler that
// returns nil without settling completes the task (unless it said
// [Task.MustSettle]); one that returns an error or panics fails it with a
// message that shows no insides, only an id under which the log has the rest.
//
// # Twice
//
// A handler may run twice for one turn: the process may die after an effect
// and before the store knew, or be paused until its lease was given to another.
// What the loser of such a pair writes is refused, but its effects elsewhere
// stand. [Task.Attempt] counts the attempts, and [Task.IdempotencyKey] is the
// same in all of them: hand it to what must not happen twice. In every run the
// first emit of an artifact id replaces what an earlier run emitted under it,
// so that nothing is doubled.
//
// # Ends
//
// The handler's context ends early when the sender cancels ([ErrCanceled]), the
// lease is lost ([ErrLeaseLost]), the executor stops ([ErrDraining]) or the turn
// has run too long ([ErrMaxRuntime]); [context.Cause] tells which. A handler then
// returns soon, with any error. It cannot save a task that it has lost; while
// draining it may still settle, and otherwise the task runs again elsewhere.
//
// # Tests
//
// Package agenttest runs an agent without a cluster.
package agent
