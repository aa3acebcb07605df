package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/examples/ledger/reconcile"
	"github.com/errandhq/errand/pkg/agent"
)

// matchesJSON is a JSON array of the matches, cut into n pieces that make one
// document together.
func matchesJSON(matches []reconcile.Match, n int) ([]string, error) {
	type row struct {
		Invoice  string `json:"invoice"`
		Customer string `json:"customer"`
		Amount   string `json:"amount_eur"`
		Entry    string `json:"entry"`
		Booked   string `json:"booked"`
		How      string `json:"matched_by"`
	}
	pieces := make([]string, n)
	pieces[0] = "[\n"
	for i, m := range matches {
		var line strings.Builder
		encoder := json.NewEncoder(&line)
		encoder.SetEscapeHTML(false) // for people to read
		if err := encoder.Encode(row{
			Invoice: m.Invoice.Number, Customer: m.Invoice.Customer, Amount: m.Invoice.Amount.String(),
			Entry: m.Entry.ID, Booked: m.Entry.Date.Format(time.DateOnly), How: string(m.How),
		}); err != nil {
			return nil, fmt.Errorf("encode match: %w", err)
		}
		separator := ",\n"
		if i == len(matches)-1 {
			separator = "\n"
		}
		pieces[i*n/len(matches)] += "  " + strings.TrimSuffix(line.String(), "\n") + separator
	}
	pieces[n-1] += "]\n"
	return pieces, nil
}

// report is what goes into the closing artifact.
type report struct {
	result reconcile.Result
	// Whether the small unmatched invoices are rounding, and where that was said.
	rounding  bool
	decidedIn string
	small     []reconcile.Invoice
	// What somebody has to look at.
	open []reconcile.Invoice
}

func emitReport(ctx context.Context, t *agent.Task, r report) error {
	before, err := t.References(ctx)
	if err != nil {
		return err
	}
	part := agent.Text(r.markdown(t.ID(), before))
	part.MediaType, part.Filename = "text/markdown", "report.md"
	err = t.Emit(ctx, &a2apb.Artifact{ArtifactId: "report", Name: "report.md", Parts: []*a2apb.Part{part}})
	if err != nil {
		return err
	}
	return t.Complete(ctx, agent.Text(r.summary()))
}

func (r report) summary() string {
	return fmt.Sprintf("%d of %d invoices are paid, %d are open.",
		len(r.result.Matches), len(r.result.Matches)+len(r.result.Unmatched), len(r.open))
}

func (r report) markdown(taskID string, before []*a2apb.Task) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Reconciliation\n\n%s\n", r.summary())
	for _, earlier := range before {
		fmt.Fprintf(&b, "\nFollows task %s.\n", earlier.GetId())
	}
	if r.rounding {
		fmt.Fprintf(&b, "\n## Rounding\n\n%d invoices under %s EUR, together %s EUR", len(r.small), small, reconcile.Total(r.small))
		if r.decidedIn != taskID {
			fmt.Fprintf(&b, ", as decided in task %s", r.decidedIn)
		}
		b.WriteString(".\n")
	}
	b.WriteString("\n## Open invoices\n\n")
	for _, i := range r.open {
		fmt.Fprintf(&b, "- %s, %s: %s EUR\n", i.Number, i.Customer, i.Amount)
	}
	if len(r.open) == 0 {
		b.WriteString("None.\n")
	}
	b.WriteString("\n## Entries without an invoice\n\n")
	for _, e := range r.result.Leftover {
		fmt.Fprintf(&b, "- %s, %s: %s EUR\n", e.ID, e.Text, e.Amount)
	}
	if len(r.result.Leftover) == 0 {
		b.WriteString("None.\n")
	}
	return b.String()
}
