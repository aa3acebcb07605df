package reconcile_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/errandhq/errand/examples/ledger/reconcile"
	"github.com/stretchr/testify/require"
)

func month(t *testing.T, name string) reconcile.Result {
	t.Helper()
	invoices, err := reconcile.ReadInvoices(file(t, "invoices-"+name+".csv"))
	require.NoError(t, err)
	entries, err := reconcile.ReadEntries(file(t, "ledger-"+name+".csv"))
	require.NoError(t, err)
	return reconcile.Months(invoices, entries)
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "data", name))
	require.NoError(t, err)
	return string(data)
}

func numbers(invoices []reconcile.Invoice) []string {
	var all []string
	for _, i := range invoices {
		all = append(all, i.Number)
	}
	return all
}

func TestMonths_September(t *testing.T) {
	t.Parallel()
	r := month(t, "2026-09")
	require.Len(t, r.Matches, 8)
	require.Equal(t, []string{"INV-2026-0906", "INV-2026-0909", "INV-2026-0911", "INV-2026-0912"}, numbers(r.Unmatched))
	require.Len(t, r.Leftover, 2)
	under, others := reconcile.Below(r.Unmatched, 50_00)
	require.Equal(t, []string{"INV-2026-0906", "INV-2026-0911"}, numbers(under))
	require.Equal(t, "51.65", reconcile.Total(under).String())
	require.Len(t, others, 2)
}

func TestMonths_October(t *testing.T) {
	t.Parallel()
	r := month(t, "2026-10")
	require.Len(t, r.Matches, 5)
	require.Equal(t, []string{"INV-2026-1003", "INV-2026-1007"}, numbers(r.Unmatched))
}

func day(n int) time.Time { return time.Date(2026, 9, n, 0, 0, 0, 0, time.UTC) }

func TestMonths_AnEntryPaysOneInvoiceAndTheCertainOneFirst(t *testing.T) {
	t.Parallel()
	vague := reconcile.Invoice{Number: "INV-1", Date: day(1), Customer: "Ada", Amount: 100}
	named := reconcile.Invoice{Number: "INV-2", Date: day(1), Customer: "Ada", Amount: 100}
	entry := reconcile.Entry{ID: "1", Date: day(3), Text: "Ada pays inv-2", Amount: 100}
	r := reconcile.Months([]reconcile.Invoice{vague, named}, []reconcile.Entry{entry})
	require.Equal(t, []reconcile.Match{{Invoice: named, Entry: entry, How: reconcile.ByNumber}}, r.Matches)
	require.Equal(t, []reconcile.Invoice{vague}, r.Unmatched)
}

func TestMonths_PaymentThatOnlyNamesTheCustomerComesInTime(t *testing.T) {
	t.Parallel()
	invoice := reconcile.Invoice{Number: "INV-1", Date: day(10), Customer: "Ada", Amount: 100}
	for _, tc := range []struct {
		date    time.Time
		matched bool
	}{{day(9), false}, {day(10), true}, {day(10 + 45), true}, {day(10 + 46), false}} {
		r := reconcile.Months([]reconcile.Invoice{invoice}, []reconcile.Entry{{Date: tc.date, Text: "ADA", Amount: 100}})
		require.Equal(t, tc.matched, len(r.Matches) == 1, tc.date)
	}
}

func TestMonths_ANumberIsNotAnother(t *testing.T) {
	t.Parallel()
	invoice := reconcile.Invoice{Number: "INV-1", Date: day(1), Customer: "Ada", Amount: 100}
	for text, matched := range map[string]bool{
		"INV-1": true, "for INV-1.": true, "INV-10": false, "XINV-1": false, "INV-10 and INV-1": true, "": false,
	} {
		r := reconcile.Months([]reconcile.Invoice{invoice}, []reconcile.Entry{{Date: day(2), Text: text, Amount: 100}})
		require.Equal(t, matched, len(r.Matches) == 1, text)
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	require.Equal(t, reconcile.Invoices, reconcile.KindOf("\uFEFFInvoice, Date, Customer, Amount_EUR\r\n"))
	require.Equal(t, reconcile.Ledger, reconcile.KindOf("entry,date,text,amount_eur\n1,2"))
	require.Equal(t, reconcile.Unknown, reconcile.KindOf("Please reconcile September, thanks"))
}

func TestParseCents(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]reconcile.Cents{"12.75": 1275, "-3": -300, "0.5": 50, "7": 700, "-0.01": -1} {
		got, err := reconcile.ParseCents(text)
		require.NoError(t, err, text)
		require.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "-", "1,5", "1.234", "1e3", "--1", "+1", "NaN", "9999999999999"} {
		_, err := reconcile.ParseCents(text)
		require.Error(t, err, text)
	}
}

func TestRead_NamesTheLineThatItCannotRead(t *testing.T) {
	t.Parallel()
	const header = "invoice,date,customer,amount_eur\n"
	for text, part := range map[string]string{
		"INV-1,2026-09-01,Ada,1.00\nINV-2,yesterday,Ada,1.00\n": "line 3",
		"INV-1,2026-09-01,Ada,lots\n":                           "line 2",
		"INV-1,2026-09-01,Ada\n":                                "line 2",
		"INV-1,2026-09-01,\"Ada,1.00\n":                         "line",
	} {
		_, err := reconcile.ReadInvoices(header + text)
		require.ErrorIs(t, err, reconcile.ErrCSV)
		require.ErrorContains(t, err, part)
	}
}

func FuzzReadInvoices(f *testing.F) {
	f.Add("invoice,date,customer,amount_eur\nINV-1,2026-09-01,Ada,1.00\n")
	f.Fuzz(func(t *testing.T, text string) {
		invoices, err := reconcile.ReadInvoices(text)
		if err == nil {
			for _, i := range invoices {
				again, err := reconcile.ParseCents(i.Amount.String())
				require.NoError(t, err)
				require.Equal(t, i.Amount, again)
			}
		}
	})
}
