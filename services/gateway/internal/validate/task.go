package validate

import (
	"fmt"
	"strings"
	"unicode/utf8"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/a2aerr"
	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/task"
)

// MaxPageSize is the largest page of ListTasks (A2A §3.1.4).
const MaxPageSize = 100

// maxPageToken is far above what the store hands out.
const maxPageToken = 4096

// Get checks GetTask.
func Get(r *a2apb.GetTaskRequest, limits config.Limits) error {
	if err := ID("id", r.GetId(), limits.ID); err != nil {
		return err
	}
	return HistoryLength("historyLength", r.GetHistoryLength())
}

// Cancel checks CancelTask.
func Cancel(r *a2apb.CancelTaskRequest, limits config.Limits) error {
	if err := ID("id", r.GetId(), limits.ID); err != nil {
		return err
	}
	return newValues(limits).object("metadata", r.GetMetadata())
}

// List checks ListTasks; the page size is set already.
func List(r *a2apb.ListTasksRequest, limits config.Limits) error {
	if err := optionalID("contextId", r.GetContextId(), limits.ID); err != nil {
		return err
	}
	if s := r.GetStatus(); s != a2apb.TaskState_TASK_STATE_UNSPECIFIED && !task.Known(s) {
		return a2aerr.Invalid("status", "must be one of the task states")
	}
	if r.GetPageSize() < 1 || r.GetPageSize() > MaxPageSize {
		return a2aerr.Invalid("pageSize", fmt.Sprintf("must be from 1 to %d", MaxPageSize))
	}
	if t := r.GetPageToken(); len(t) > maxPageToken || !utf8.ValidString(t) || strings.ContainsRune(t, 0) {
		return a2aerr.Invalid("pageToken", "must be a token from an earlier page")
	}
	if err := HistoryLength("historyLength", r.GetHistoryLength()); err != nil {
		return err
	}
	if t := r.GetStatusTimestampAfter(); t != nil && !t.IsValid() {
		return a2aerr.Invalid("statusTimestampAfter", "must be a time between the years 1 and 9999")
	}
	return nil
}
