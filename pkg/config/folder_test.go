package config_test

import (
	"os"
	"testing"

	"github.com/errandhq/errand/pkg/config"
	"github.com/stretchr/testify/require"
)

// A daemon may have been started in a folder that is gone now. It has no
// t.Parallel, since all tests share the working directory.
func TestAFileIsReadWithoutAWorkingDirectory(t *testing.T) {
	folder := t.TempDir()
	t.Chdir(folder)
	require.NoError(t, os.Remove(folder))
	_, err := config.Parse([]byte(minimal))
	require.NoError(t, err)
}
