package run

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/errandhq/errand/services/e2e/internal/chaos/journal"
)

// keep writes the journal into the run's folder, as JSON lines.
func (r *run) keep() error {
	if err := writeLines(r.path("messages.jsonl"), r.journal.Messages()); err != nil {
		return err
	}
	if err := writeLines(r.path("cancels.jsonl"), r.journal.Cancels()); err != nil {
		return err
	}
	if err := writeLines(r.path("reads.jsonl"), r.journal.Reads()); err != nil {
		return err
	}
	if err := writeLines[*journal.Stream](r.path("streams.jsonl"), r.journal.Streams()); err != nil {
		return err
	}
	return writeLines(r.path("interruptions.jsonl"), r.nemesis.Interruptions())
}

func writeLines[T any](path string, entries []T) error {
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("keep the journal: %w", err)
	}
	defer func() { _ = file.Close() }()
	lines := json.NewEncoder(file)
	for _, entry := range entries {
		if err := lines.Encode(entry); err != nil {
			return fmt.Errorf("keep the journal: %w", err)
		}
	}
	return file.Close()
}
