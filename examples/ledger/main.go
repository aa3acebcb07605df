// Ledger is an agent that reconciles invoices with a ledger, and an example of
// one: files in, an artifact in chunks, a question, an answer, a report, and a
// context that remembers the answer.
package main

import "github.com/errandhq/errand/services/executor"

func main() { executor.Main(newAgent()) }
