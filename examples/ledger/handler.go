package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/examples/ledger/reconcile"
	"github.com/errandhq/errand/pkg/agent"
)

// small is the amount below which an unmatched invoice may be rounding.
const small = reconcile.Cents(50_00)

// memory is what the agent keeps of a context.
type memory struct {
	// Whether small unmatched invoices are rounding; nil until somebody said so.
	Rounding *bool `json:"rounding,omitempty"`
	// The task in which it was said.
	DecidedIn string `json:"decided_in,omitempty"`
}

func newAgent() agent.Agent {
	return agent.Agent{Name: "ledger", Handler: agent.HandlerFunc(handle)}
}

// handle runs for each turn. It keeps nothing between turns but what Errand
// keeps: the messages with the files, and the context.
func handle(ctx context.Context, t *agent.Task) error {
	books, err := readBooks(t.Messages())
	switch {
	case errors.Is(err, errMissing):
		return t.AskInput(ctx, agent.Text(err.Error()))
	case errors.Is(err, reconcile.ErrCSV):
		return t.Fail(ctx, agent.Text(err.Error()))
	case err != nil:
		return err
	}
	result := reconcile.Months(books.invoices, books.entries)
	if bringsFiles(t.NewMessages()) {
		if err := emitMatches(ctx, t, result); err != nil {
			return err
		}
	}
	under, open := reconcile.Below(result.Unmatched, small)
	decision, err := decide(ctx, t, under)
	if err != nil {
		return err
	}
	if decision == nil {
		return t.AskInput(ctx, agent.Text(question(under)))
	}
	if !*decision.Rounding {
		open = result.Unmatched
	}
	return emitReport(ctx, t, report{result: result, rounding: *decision.Rounding, small: under, open: open, decidedIn: decision.DecidedIn})
}

// decide tells whether small invoices are rounding: as the sender just said, or
// as was said earlier in the context; nil if it has to be asked.
func decide(ctx context.Context, t *agent.Task, under []reconcile.Invoice) (*memory, error) {
	if len(under) == 0 {
		return &memory{Rounding: new(bool)}, nil
	}
	if !bringsFiles(t.NewMessages()) {
		if yes, understood := parseAnswer(agent.TextOf(t.Message().GetMessage())); understood {
			said := memory{Rounding: &yes, DecidedIn: t.ID()}
			return &said, agent.UpdateContext(ctx, t.Context(), func(m *memory) error {
				*m = said
				return nil
			})
		}
		return nil, nil //nolint:nilnil // not understood: to be asked again
	}
	var kept memory
	if err := t.Context().Get(ctx, &kept); err != nil {
		return nil, err
	}
	if kept.Rounding == nil {
		return nil, nil //nolint:nilnil // to be asked
	}
	return &kept, nil
}

func question(under []reconcile.Invoice) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d unmatched invoices are under %s EUR, together %s EUR:\n", len(under), small, reconcile.Total(under))
	for _, i := range under {
		fmt.Fprintf(&b, "- %s, %s: %s EUR\n", i.Number, i.Customer, i.Amount)
	}
	b.WriteString("Are they rounding? Please answer yes or no.")
	return b.String()
}

// parseAnswer reads a yes or a no from the first word.
func parseAnswer(text string) (yes, understood bool) {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return strings.ContainsRune(" ,.;:!\n\t", r) })
	if len(words) == 0 {
		return false, false
	}
	switch words[0] {
	case "yes", "y", "ok", "rounding":
		return true, true
	case "no", "n", "not":
		return false, true
	default:
		return false, false
	}
}

// emitMatches streams matches.json in three chunks, as a slow source would.
func emitMatches(ctx context.Context, t *agent.Task, result reconcile.Result) error {
	chunks, err := matchesJSON(result.Matches, 3)
	if err != nil {
		return err
	}
	stream := t.Stream(&a2apb.Artifact{
		ArtifactId: "matches", Name: "matches.json", Description: "Each invoice with the ledger entry that pays it.",
	})
	for i, chunk := range chunks {
		part := agent.Text(chunk)
		part.MediaType, part.Filename = "application/json", "matches.json"
		send := stream.Send
		if i == len(chunks)-1 {
			send = stream.SendLast
		}
		if err := send(ctx, part); err != nil {
			return err
		}
	}
	return nil
}
