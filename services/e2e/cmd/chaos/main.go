// Command chaos runs a cluster under load while its processes are killed, paused,
// restarted and cut off, and checks that nothing was lost. A run is decided by its
// seed, which is printed together with the whole schedule:
//
//	make chaos DURATION=20m SEED=7
//
// The folder of a run has the schedule as a file. It, or a part of it, is done again
// with the load of the same seed by
//
//	chaos --seed 7 --schedule FOLDER/schedule
//
// It exits with 1 if a promise was broken, and then keeps all that tells the story.
package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/alecthomas/kong"

	"github.com/errandhq/errand/services/e2e/internal/chaos/run"
	"github.com/errandhq/errand/services/e2e/internal/chaos/schedule"
)

type settings struct {
	Duration time.Duration `help:"How long messages are sent." default:"20m"`
	Seed     *uint64       `help:"Decides schedule and load; random when not given."`
	Schedule string        `help:"The file of a schedule that an earlier run has left, or a part of it, in place of the seed's." type:"existingfile"`
	Dir      string        `help:"A new folder for what the run leaves behind; a temporary one when not given. Postgres must be able to reach it."`
	Bin      string        `help:"Folder of the binaries." default:"bin" type:"existingdir"`
	Agent    string        `help:"The chaosagent program; beside this one when not given." type:"existingfile"`
	Rate     float64       `help:"Conversations that begin each second, of about 1.2 messages each." default:"30"`
	Pace     time.Duration `help:"Mean time between two steps of the schedule." default:"${pace}"`
	Senders  int           `help:"Conversations that may be open at the same time." default:"150"`
	Keep     bool          `help:"Keep the folder although nothing went wrong."`
}

const description = `Proves that a cluster loses nothing, whatever is done to it.

A run prints its seed and its schedule, and has the schedule as a file in its folder.
To take the same steps again, or some of them, under the load of the same seed:

  chaos --seed 7 --schedule FOLDER/schedule

Each line of a schedule is a time, what is done (kill, pause, restart, cut, reset or
wipe), to which process, and for how long.`

var errViolated = errors.New("promises were broken")

func main() {
	var s settings
	kong.Parse(&s, kong.Name("chaos"), kong.Description(description),
		kong.UsageOnError(), kong.Vars{"pace": schedule.Pace.String()})
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := s.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(1)
	}
}

func (s settings) run(ctx context.Context) error {
	cfg, err := s.config()
	if err != nil {
		return err
	}
	fmt.Fprintln(cfg.Out, "# folder", cfg.Dir)
	kept, err := run.Run(ctx, cfg)
	switch {
	case err != nil:
		return fmt.Errorf("%w; see %s", err, cfg.Dir)
	case !kept:
		return fmt.Errorf("%w; see %s", errViolated, cfg.Dir)
	case s.Keep:
		return nil
	default:
		return os.RemoveAll(cfg.Dir)
	}
}

func (s settings) config() (run.Config, error) {
	cfg := run.Config{
		Seed: rand.Uint64(), Duration: s.Duration, Pace: s.Pace,
		Senders: s.Senders, Rate: s.Rate, Bin: s.Bin, Agent: s.Agent, Out: os.Stdout,
	}
	if s.Seed != nil {
		cfg.Seed = *s.Seed
	}
	var err error
	if s.Agent == "" {
		self, err := os.Executable()
		if err != nil {
			return cfg, fmt.Errorf("find chaosagent: %w", err)
		}
		cfg.Agent = filepath.Join(filepath.Dir(self), "chaosagent")
	}
	if s.Schedule != "" {
		if cfg.Schedule, err = read(s.Schedule); err != nil {
			return cfg, err
		}
	}
	cfg.Dir, err = newDir(s.Dir)
	return cfg, err
}

func read(path string) (schedule.Schedule, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read schedule: %w", err)
	}
	defer func() { _ = file.Close() }()
	return schedule.Parse(file)
}

// newDir makes a folder that the user postgres can pass through.
func newDir(given string) (string, error) {
	dir, err := filepath.Abs(given)
	if given == "" {
		dir, err = os.MkdirTemp("", "errand-chaos-")
	} else if err == nil {
		err = os.Mkdir(dir, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		return "", fmt.Errorf("create folder: %w", err)
	}
	return dir, nil
}
