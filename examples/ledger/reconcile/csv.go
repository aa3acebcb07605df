package reconcile

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrCSV is a file that can't be read; its text names the line and is fit for
// whoever sent the file.
var ErrCSV = errors.New("unreadable CSV")

// Kind says what a CSV file holds.
type Kind int

const (
	// Unknown is text that is neither.
	Unknown Kind = iota
	// Invoices has the columns invoice, date, customer, amount_eur.
	Invoices
	// Ledger has the columns entry, date, text, amount_eur.
	Ledger
)

var (
	invoiceColumns = []string{"invoice", "date", "customer", "amount_eur"}
	entryColumns   = []string{"entry", "date", "text", "amount_eur"}
)

// KindOf tells by the first line what a file holds.
func KindOf(file string) Kind {
	first, _, _ := strings.Cut(trimBOM(file), "\n")
	switch columns := strings.Split(strings.ToLower(strings.ReplaceAll(strings.TrimSpace(first), " ", "")), ","); {
	case slices.Equal(columns, invoiceColumns):
		return Invoices
	case slices.Equal(columns, entryColumns):
		return Ledger
	default:
		return Unknown
	}
}

// ReadInvoices reads a file of kind Invoices.
func ReadInvoices(file string) ([]Invoice, error) {
	return read(file, func(row []string, date time.Time, amount Cents) Invoice {
		return Invoice{Number: row[0], Date: date, Customer: row[2], Amount: amount}
	})
}

// ReadEntries reads a file of kind Ledger.
func ReadEntries(file string) ([]Entry, error) {
	return read(file, func(row []string, date time.Time, amount Cents) Entry {
		return Entry{ID: row[0], Date: date, Text: row[2], Amount: amount}
	})
}

// read reads rows of four columns with the date second and the amount last.
func read[T any](file string, record func(row []string, date time.Time, amount Cents) T) ([]T, error) {
	r := csv.NewReader(strings.NewReader(trimBOM(file)))
	r.FieldsPerRecord = len(invoiceColumns)
	if _, err := r.Read(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCSV, err)
	}
	var rows []T
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrCSV, err)
		}
		line, _ := r.FieldPos(0)
		date, err := time.Parse(time.DateOnly, row[1])
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: date %q, want 2026-12-31", ErrCSV, line, row[1])
		}
		amount, err := ParseCents(row[3])
		if err != nil {
			return nil, fmt.Errorf("%w: line %d: %w", ErrCSV, line, err)
		}
		rows = append(rows, record(row, date, amount))
	}
}

// ParseCents reads an amount such as 12.75 or -3.
func ParseCents(s string) (Cents, error) {
	whole, fraction, _ := strings.Cut(strings.TrimSpace(s), ".")
	digits := strings.TrimPrefix(whole, "-")
	if digits == "" || len(digits) > 12 || len(fraction) > 2 || strings.Trim(digits+fraction, "0123456789") != "" {
		return 0, fmt.Errorf("amount %q, want 1234.56", s)
	}
	n, err := strconv.ParseInt(digits+(fraction + "00")[:2], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("amount %q: %w", s, err)
	}
	if digits != whole {
		n = -n
	}
	return Cents(n), nil
}

// String is the amount as ParseCents reads it.
func (c Cents) String() string {
	sign := ""
	if c < 0 {
		sign, c = "-", -c
	}
	return fmt.Sprintf("%s%d.%02d", sign, c/100, c%100)
}

func trimBOM(s string) string { return strings.TrimPrefix(s, "\uFEFF") }
