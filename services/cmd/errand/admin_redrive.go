package main

import (
	"context"
	"errors"
	"fmt"
	"text/tabwriter"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

type deadRedriveCommand struct {
	operator
	deadFilter

	IDs    []string `arg:"" optional:"" name:"task-id" help:"Ids of the tasks that were given up."`
	All    bool     `help:"All that were not redriven yet, up to --limit."`
	Limit  int32    `help:"How many tasks a filter or --all selects at most, the newest first; up to 1000." default:"100"`
	By     string   `help:"Who asks, for the record." env:"USER" placeholder:"NAME"`
	DryRun bool     `help:"Tell what would be done and do nothing."`
}

var (
	errNothingSelected = errors.New("want task ids, a filter such as --agent, or --all")
	errTwiceSelected   = errors.New("want task ids, or else a filter or --all")
)

// Validate keeps a mistake from running more again than was meant.
func (r *deadRedriveCommand) Validate() error {
	switch selects := r.All || r.given(); {
	case len(r.IDs) == 0 && !selects:
		return errNothingSelected
	case len(r.IDs) > 0 && selects:
		return errTwiceSelected
	default:
		return nil
	}
}

// Run prints what became of each dead letter. It fails if one was left.
func (r *deadRedriveCommand) Run(ctx context.Context, c *console) error {
	conn, admin, err := r.connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	request := &taskstorev1.RedriveDeadLettersRequest{TaskIds: r.IDs, By: r.By, DryRun: r.DryRun}
	if len(r.IDs) == 0 {
		request.Filter, request.Limit = r.proto(), r.Limit
	}
	answer, err := admin.RedriveDeadLetters(ctx, request)
	if err != nil {
		return r.explain(ctx, err)
	}
	if err := r.print(c, answer.GetResults()); err != nil {
		return err
	}
	return r.failed(answer.GetResults())
}

func (r *deadRedriveCommand) print(c *console, results []*taskstorev1.RedriveResult) error {
	if r.json() {
		for _, result := range results {
			if err := c.json(result); err != nil {
				return err
			}
		}
		return nil
	}
	table := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	defer table.Flush()
	fmt.Fprintln(table, "TASK\tOUTCOME\tNEW TASK")
	for _, result := range results {
		fmt.Fprintf(table, "%s\t%s\t%s\n", result.GetTaskId(), r.outcome(result), orNone(result.GetNewTaskId()))
	}
	return nil
}

func (r *deadRedriveCommand) outcome(result *taskstorev1.RedriveResult) string {
	switch result.GetOutcome() {
	case taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN:
		if r.DryRun {
			return "would be redriven"
		}
		return "redriven"
	case taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_ALREADY_REDRIVEN:
		return "already redriven"
	case taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_NOT_FOUND:
		return "not found"
	case taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_UNAVAILABLE:
		return "failed, try again"
	default:
		return "unknown"
	}
}

func (r *deadRedriveCommand) failed(results []*taskstorev1.RedriveResult) error {
	failed := 0
	for _, result := range results {
		switch result.GetOutcome() {
		case taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_REDRIVEN, taskstorev1.RedriveOutcome_REDRIVE_OUTCOME_ALREADY_REDRIVEN:
		default:
			failed++
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d tasks were not redriven", failed, len(results))
	}
	return nil
}
