package main

import (
	"errors"
	"fmt"
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/examples/ledger/reconcile"
	eventv1 "github.com/errandhq/errand/proto/gen/errand/event/v1"
)

var errMissing = errors.New("please send two CSV files")

// books are the two files.
type books struct {
	invoices []reconcile.Invoice
	entries  []reconcile.Entry
}

// readBooks finds the newest file of each kind in the messages of a task.
func readBooks(messages []*eventv1.UserMessage) (books, error) {
	files := make(map[reconcile.Kind]string)
	for _, m := range messages {
		for _, f := range csvFiles(m.GetMessage()) {
			files[reconcile.KindOf(f)] = f
		}
	}
	for kind, what := range map[reconcile.Kind]string{
		reconcile.Invoices: "the invoices (invoice, date, customer, amount_eur)",
		reconcile.Ledger:   "the ledger entries (entry, date, text, amount_eur)",
	} {
		if files[kind] == "" {
			return books{}, fmt.Errorf("%w: I am missing %s", errMissing, what)
		}
	}
	var b books
	var err error
	if b.invoices, err = reconcile.ReadInvoices(files[reconcile.Invoices]); err != nil {
		return books{}, fmt.Errorf("invoices: %w", err)
	}
	if b.entries, err = reconcile.ReadEntries(files[reconcile.Ledger]); err != nil {
		return books{}, fmt.Errorf("ledger: %w", err)
	}
	return b, nil
}

func bringsFiles(messages []*eventv1.UserMessage) bool {
	for _, m := range messages {
		if len(csvFiles(m.GetMessage())) > 0 {
			return true
		}
	}
	return false
}

// csvFiles are the CSV files of a message: file parts, text parts, and blocks of
// a text part that blank lines separate.
func csvFiles(m *a2apb.Message) []string {
	var files []string
	for _, p := range m.GetParts() {
		text := p.GetText()
		if raw := p.GetRaw(); raw != nil {
			text = string(raw)
		}
		for block := range strings.SplitSeq(strings.ReplaceAll(text, "\r\n", "\n"), "\n\n") {
			if block = strings.TrimSpace(block); reconcile.KindOf(block) != reconcile.Unknown {
				files = append(files, block)
			}
		}
	}
	return files
}
