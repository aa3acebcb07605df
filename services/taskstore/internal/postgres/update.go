package postgres

import (
	"context"
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/batch"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errKeyVanished says that a key was neither inserted nor found: its record was
// deleted by retention in between.
var errKeyVanished = fmt.Errorf("%w: a dedupe record was deleted meanwhile", engine.ErrUnavailable)

// Update runs one transaction in two round trips. It is run again, decide
// included, when it lost against another one or its connection was gone before
// COMMIT was sent. Once COMMIT is on its way the caller's context counts no
// more: an update that was interrupted there would be in doubt for nothing.
func (e *Engine) Update(ctx context.Context, sel engine.Selection, decide func(*engine.Loaded) (*engine.Changes, error)) error {
	var decideErr error
	err := e.do(ctx, "update", func(conn *pgxpool.Conn) error {
		loaded, err := e.load(ctx, conn, &sel)
		if err != nil {
			abandon(ctx, conn)
			return err
		}
		var changes *engine.Changes
		changes, decideErr = decide(loaded)
		if decideErr != nil || ctx.Err() != nil || isEmpty(changes, loaded) {
			abandon(ctx, conn)
			return ctx.Err()
		}
		return e.commit(ctx, conn, changes)
	})
	if decideErr != nil {
		return decideErr
	}
	return err
}

// isEmpty tells whether there is nothing to commit: a transaction that only held
// locks would wait for the disk like any other.
func isEmpty(c *engine.Changes, loaded *engine.Loaded) bool {
	if c == nil {
		return len(loaded.Reserved) == 0
	}
	rows := len(c.InsertTasks) + len(c.UpdateTasks) + len(c.Messages) + len(c.DropArtifacts) + len(c.Chunks) +
		len(c.Events) + len(c.UpdateDedupe) + len(c.DropDedupe) + len(c.PutLeases) + len(c.DropLeases) +
		len(c.Directs) + len(c.TouchContexts) + len(c.PutContexts) + len(c.DeadLetters) + len(c.RedriveDeadLetters)
	return rows+len(loaded.Reserved) == 0
}

// load is the first half of an update.
func (e *Engine) load(ctx context.Context, conn *pgxpool.Conn, sel *engine.Selection) (*engine.Loaded, error) {
	ctx, cancel := e.patience.forAnswer(ctx)
	defer cancel()
	request := &pgx.Batch{}
	request.Queue(sqlBeginUpdate.text)
	request.Queue(sqlGuard.text, sqlGuard.with(e.patience.guards(len(batch.Callers(ctx)))))
	loaded := &engine.Loaded{}
	queueDedupe(request, sel.Reserve, loaded)
	queueTasks(request, sel.Tasks, loaded)
	queueLeases(request, sel.Leases, loaded)
	queueArtifacts(request, sel.Artifacts, loaded)
	queueContexts(request, sel.Contexts, loaded)
	queueDeadLetters(request, sel.DeadLetters, loaded)
	if err := conn.SendBatch(ctx, request).Close(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	if len(loaded.Reserved)+len(loaded.Known) < len(sel.Reserve) {
		return nil, errKeyVanished
	}
	return loaded, nil
}

// commit is the second half of an update.
func (e *Engine) commit(ctx context.Context, conn *pgxpool.Conn, changes *engine.Changes) error {
	ctx, cancel := e.patience.forAnswer(context.WithoutCancel(ctx))
	defer cancel()
	request := &pgx.Batch{}
	queueChanges(request, changes)
	request.Queue(sqlCommit.text)
	err := conn.SendBatch(ctx, request).Close()
	if err == nil {
		return nil
	}
	err = fmt.Errorf("commit: %w", err)
	if !conn.Conn().IsClosed() {
		// The server answered: the transaction is still open, and failed.
		abandon(ctx, conn)
		return err
	}
	// Whether the request was sent at all is not to be known: once a connection is
	// gone, the driver says of every statement that it was safe to try again.
	return fmt.Errorf("%w: %w", engine.ErrInDoubt, err)
}
