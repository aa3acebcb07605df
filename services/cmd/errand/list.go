package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/types/known/timestamppb"
)

type listCommand struct {
	target

	Context   string    `help:"Only tasks of this context." placeholder:"ID"`
	State     string    `help:"Only tasks in this state, such as working or input-required." placeholder:"STATE"`
	Since     time.Time `help:"Only tasks whose state has changed since then (RFC 3339)." placeholder:"TIME" format:"2006-01-02T15:04:05Z07:00"`
	Limit     int       `help:"At most so many; 0 for all." default:"50"`
	Artifacts bool      `help:"With artifacts; for json output."`
}

const maxPage = 100

// Run prints a table, or one task a line.
func (l *listCommand) Run(ctx context.Context, c *console) error {
	request, err := l.request()
	if err != nil {
		return err
	}
	agent, err := l.connect(ctx, c)
	if err != nil {
		return err
	}
	defer agent.Close()
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	if !l.json() {
		fmt.Fprintln(table, "TASK\tSTATE\tSINCE\tCONTEXT")
	}
	defer table.Flush()
	listed := 0
	for task, err := range agent.List(ctx, request) {
		switch {
		case err != nil:
			return err
		case l.json():
			if err := c.json(task); err != nil {
				return err
			}
		default:
			fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", task.GetId(), stateName(task), timeOf(task), task.GetContextId())
		}
		if listed++; listed == l.Limit {
			return nil
		}
	}
	return nil
}

func (l *listCommand) request() (*a2apb.ListTasksRequest, error) {
	size := int32(maxPage)
	if l.Limit > 0 && l.Limit < maxPage {
		size = int32(l.Limit)
	}
	none := int32(0)
	request := &a2apb.ListTasksRequest{ContextId: l.Context, PageSize: &size, HistoryLength: &none}
	if l.Artifacts {
		request.IncludeArtifacts = &l.Artifacts
	}
	if !l.Since.IsZero() {
		request.StatusTimestampAfter = timestamppb.New(l.Since)
	}
	if l.State != "" {
		name := "TASK_STATE_" + strings.ToUpper(strings.ReplaceAll(l.State, "-", "_"))
		state, ok := a2apb.TaskState_value[name]
		if !ok || state == 0 {
			return nil, fmt.Errorf("state %q: want submitted, working, input-required, auth-required, completed, failed, canceled or rejected", l.State)
		}
		request.Status = a2apb.TaskState(state)
	}
	return request, nil
}
