package main

import (
	"fmt"
	"io"
	"path/filepath"
	"text/tabwriter"

	"github.com/errandhq/errand/services/e2e/internal/launch"
)

// describe prints what runs, and where.
func describe(w io.Writer, c *launch.Cluster, dir string) {
	fmt.Fprintf(w, "\nJSON-RPC   http://%[1]s/rpc\nHTTP+JSON  http://%[1]s\ngRPC       %[2]s\nagent card http://%[1]s/.well-known/agent-card.json\n",
		c.HTTP(), c.GRPC())
	fmt.Fprintf(w, "database   %s\nNATS       %s\nlogs       %s\n\n", c.DatabaseURL(), c.NATSURL(), filepath.Join(dir, "logs"))
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "PROCESS\tPID\tOPERATIONS")
	for _, p := range c.Processes() {
		fmt.Fprintf(table, "%s\t%d\t%s\n", p.Name(), p.PID(), p.OpsURL())
	}
	table.Flush()
	fmt.Fprintln(w)
}
