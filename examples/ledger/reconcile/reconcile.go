// Package reconcile finds for each invoice the ledger entry that pays it. It is
// plain bookkeeping and knows nothing of agents.
package reconcile

import (
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Cents is an amount of money in hundredths of a euro.
type Cents int64

// Invoice is a bill that was sent.
type Invoice struct {
	Number   string
	Date     time.Time
	Customer string
	Amount   Cents
}

// Entry is a line of the ledger.
type Entry struct {
	ID     string
	Date   time.Time
	Text   string
	Amount Cents
}

// How says why an entry was taken for an invoice's payment.
type How string

const (
	// ByNumber means that the entry names the invoice and has its amount.
	ByNumber How = "number"
	// ByCustomer means that the entry names the customer and has the amount, and
	// was booked within the time for payment.
	ByCustomer How = "customer"
)

// paymentTime is how long after an invoice a payment that doesn't name it may
// still be for it.
const paymentTime = 45 * 24 * time.Hour

// Match is an invoice and the entry that pays it.
type Match struct {
	Invoice Invoice
	Entry   Entry
	How     How
}

// Result is a reconciled month. Everything is in the order of the input.
type Result struct {
	Matches []Match
	// Invoices that no entry pays.
	Unmatched []Invoice
	// Entries that pay no invoice.
	Leftover []Entry
}

// Months reconciles invoices with entries; each entry pays one invoice at most.
// Entries that name an invoice are taken first, so that a vague one can't take
// the place of a certain one.
func Months(invoices []Invoice, entries []Entry) Result {
	paidBy := make(map[int]Match, len(invoices))
	used := make(map[int]bool, len(entries))
	for _, how := range []How{ByNumber, ByCustomer} {
		for i, invoice := range invoices {
			if _, paid := paidBy[i]; paid {
				continue
			}
			for j, entry := range entries {
				if !used[j] && pays(entry, invoice, how) {
					paidBy[i], used[j] = Match{Invoice: invoice, Entry: entry, How: how}, true
					break
				}
			}
		}
	}
	var r Result
	for i, invoice := range invoices {
		if m, paid := paidBy[i]; paid {
			r.Matches = append(r.Matches, m)
		} else {
			r.Unmatched = append(r.Unmatched, invoice)
		}
	}
	for j, entry := range entries {
		if !used[j] {
			r.Leftover = append(r.Leftover, entry)
		}
	}
	return r
}

func pays(e Entry, i Invoice, how How) bool {
	if e.Amount != i.Amount {
		return false
	}
	if how == ByNumber {
		return names(e.Text, i.Number)
	}
	return names(e.Text, i.Customer) && !e.Date.Before(i.Date) && e.Date.Sub(i.Date) <= paymentTime
}

// names tells whether text has name as a whole: INV-1 isn't in INV-10.
func names(text, name string) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	for {
		before, after, found := strings.Cut(text, name)
		if !found || name == "" {
			return false
		}
		left, _ := utf8.DecodeLastRuneInString(before)
		right, _ := utf8.DecodeRuneInString(after)
		if !inWord(left) && !inWord(right) {
			return true
		}
		text = after
	}
}

func inWord(r rune) bool { return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r)) }

// Below splits invoices into those under an amount and the others.
func Below(invoices []Invoice, limit Cents) (under, others []Invoice) {
	for _, i := range invoices {
		if i.Amount < limit {
			under = append(under, i)
		} else {
			others = append(others, i)
		}
	}
	return under, others
}

// Total adds up invoices.
func Total(invoices []Invoice) Cents {
	var sum Cents
	for _, i := range invoices {
		sum += i.Amount
	}
	return sum
}
