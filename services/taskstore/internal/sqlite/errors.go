package sqlite

import (
	"errors"
	"fmt"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/ncruces/go-sqlite3"
)

// translate gives driver errors their meaning, by code.
func translate(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sqlite3.BUSY), errors.Is(err, sqlite3.LOCKED),
		errors.Is(err, sqlite3.IOERR), errors.Is(err, sqlite3.FULL), errors.Is(err, sqlite3.CANTOPEN),
		errors.Is(err, sqlite3.NOMEM):
		return fmt.Errorf("%w: %w", engine.ErrUnavailable, err)
	default:
		return err
	}
}
