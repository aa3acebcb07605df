// Command errand sends messages to A2A 1.0 agents, Errand's or anybody's, and
// follows the tasks that come of them; errand dev runs all of Errand in one
// process.
package main

import "os"

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }
