package launch

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// cursorKey is the key of the page tokens, kept so that they outlast the cluster
// as its tasks do.
func cursorKey(dir string) (string, error) {
	path := filepath.Join(dir, "cursor.key")
	key, err := os.ReadFile(path)
	if err == nil {
		return string(key), nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("read the key of page tokens: %w", err)
	}
	fresh := rand.Text()
	if err := replace(path, []byte(fresh)); err != nil {
		return "", fmt.Errorf("keep the key of page tokens: %w", err)
	}
	return fresh, nil
}
