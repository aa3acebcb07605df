package queue

import (
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	executorv1 "github.com/errandhq/errand/proto/gen/errand/executor/v1"
)

func TestOnlyWorkOfItsOwnSubjectIsTaken(t *testing.T) {
	t.Parallel()
	for name, item := range map[string]*executorv1.WorkItem{
		"another agent's":  {TaskId: "t", Agent: "reader", Tenant: "default"},
		"another tenant's": {TaskId: "t", Agent: "writer", Tenant: "other"},
		"of no task":       {Agent: "writer", Tenant: "default"},
		"empty":            {},
	} {
		data, err := proto.Marshal(item)
		require.NoError(t, err)
		_, err = readItem(data, "writer", "default")
		require.Error(t, err, name)
	}
}

func FuzzReadItemTakesOnlyWhatIsWhole(f *testing.F) {
	whole, err := proto.Marshal(&executorv1.WorkItem{TaskId: "t", Agent: "writer", Tenant: "default", Version: 1, EnqueueCount: 1})
	require.NoError(f, err)
	f.Add(whole)
	f.Add(whole[:len(whole)/2])
	f.Add([]byte{})
	f.Add([]byte{0xff})
	f.Fuzz(func(t *testing.T, data []byte) {
		item, err := readItem(data, "writer", "default")
		if err != nil {
			require.Nil(t, item)
			return
		}
		require.NotEmpty(t, item.GetTaskId())
		require.Equal(t, "writer", item.GetAgent())
		require.Equal(t, "default", item.GetTenant())
	})
}
