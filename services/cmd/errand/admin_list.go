package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

type deadListCommand struct {
	operator
	deadFilter

	All   bool `help:"Also those that were redriven."`
	Limit int  `help:"At most so many; 0 for all." default:"50"`
}

// maxDeadPage is how many dead letters one answer may have.
const maxDeadPage = 1000

// Run prints a table, or one dead letter a line.
func (l *deadListCommand) Run(ctx context.Context, c *console) error {
	conn, admin, err := l.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	request := &taskstorev1.ListDeadLettersRequest{Filter: l.proto(), PageSize: maxDeadPage}
	if !l.All {
		request.Filter.Redriven = &l.All
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	for left := l.Limit; ; {
		if left > 0 {
			request.PageSize = int32(min(left, maxDeadPage))
		}
		page, err := admin.ListDeadLetters(ctx, request)
		if err != nil {
			return l.explain(ctx, err)
		}
		if request.GetPageToken() == "" && !l.json() {
			fmt.Fprintln(table, "TASK\tTENANT\tAGENT\tREASON\tATTEMPTS\tSINCE\tNEW TASK")
		}
		if err := l.print(c, table, page.GetDeadLetters()); err != nil {
			return err
		}
		left -= len(page.GetDeadLetters())
		if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" || l.Limit > 0 && left <= 0 {
			return nil
		}
	}
}

func (l *deadListCommand) print(c *console, table io.Writer, letters []*taskstorev1.DeadLetter) error {
	for _, letter := range letters {
		if l.json() {
			if err := c.json(letter); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%s\t%s\n",
			letter.GetTaskId(), letter.GetTenant(), letter.GetAgent(), letter.GetReason(), letter.GetAttempts(),
			letter.GetGivenUpAt().AsTime().Format(time.RFC3339), orNone(letter.GetRedrive().GetTaskId()))
	}
	return nil
}

func orNone(id string) string {
	if id == "" {
		return "-"
	}
	return id
}
