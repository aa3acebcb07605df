package sqlite_test

import (
	"testing"

	"github.com/errandhq/errand/services/taskstore/internal/storetest"
)

func BenchmarkStore(b *testing.B) {
	storetest.Benchmark(b, func(b *testing.B) storetest.Database {
		e, _ := open(b)
		return storetest.Database{Engine: e, Parallel: 1}
	})
}
