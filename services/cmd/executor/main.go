// Command errand-executor runs the agents that come with Errand; agents of your
// own are a program of your own, see executor.Main.
package main

import (
	"github.com/errandhq/errand/services/agents/scripted"
	"github.com/errandhq/errand/services/agents/tck"
	"github.com/errandhq/errand/services/executor"
)

func main() { executor.Main(scripted.New(), tck.New()) }
