package postgres

import (
	"strings"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5/pgtype"
)

// columns are the lists that several statements select.
var columns = strings.NewReplacer(
	"{{dead_letter_columns}}", `
    d.task_id,
    d.tenant,
    d.agent,
    d.owner,
    d.context_id,
    d.reason,
    d.attempts,
    d.last_holder,
    d.at,
    d.redriven_task_id,
    d.redriven_at,
    d.redriven_by`,
	"{{task_columns}}", `
    t.id,
    t.tenant,
    t.agent,
    t.owner,
    t.context_id,
    t.created_at,
    t.state,
    t.status_version,
    t.status_time,
    t.version,
    t.message_version,
    t.handled_version,
    t.metadata,
    t.content_bytes,
    t.terminal_at,
    t.phase,
    t.queued_at,
    t.due_at,
    t.enqueue_count,
    t.lease_epoch,
    t.write_seq,
    t.holder,
    t.attempt,
    t.turn_started_at,
    t.traceparent,
    t.grant_hash`,
	"{{context_columns}}", `
    c.tenant,
    c.owner,
    c.agent,
    c.context_id,
    c.state,
    c.revision,
    c.created_at,
    c.updated_at,
    c.expires_at`,
	"{{direct_columns}}", `
    d.id,
    d.tenant,
    d.owner,
    d.agent,
    d.context_id,
    d.created_at,
    d.message,
    d.reply`,
)

// taskRow is a row of tasks.
type taskRow struct {
	ID             string
	Tenant         string
	Agent          string
	Owner          string
	ContextID      string
	CreatedAt      pgtype.Timestamptz
	State          int16
	StatusVersion  int64
	StatusTime     pgtype.Timestamptz
	Version        int64
	MessageVersion int64
	HandledVersion int64
	Metadata       []byte
	ContentBytes   int64
	TerminalAt     pgtype.Timestamptz
	Phase          int16
	QueuedAt       pgtype.Timestamptz
	DueAt          pgtype.Timestamptz
	EnqueueCount   int64
	LeaseEpoch     int64
	WriteSeq       int64
	Holder         string
	Attempt        int32
	TurnStartedAt  pgtype.Timestamptz
	Traceparent    string
	GrantHash      []byte
}

func (r *taskRow) task() *engine.Task {
	return &engine.Task{
		ID:             r.ID,
		Tenant:         r.Tenant,
		Agent:          r.Agent,
		Owner:          r.Owner,
		ContextID:      r.ContextID,
		CreatedAt:      moment(r.CreatedAt),
		State:          a2apb.TaskState(r.State),
		StatusVersion:  r.StatusVersion,
		StatusTime:     moment(r.StatusTime),
		Version:        r.Version,
		MessageVersion: r.MessageVersion,
		HandledVersion: r.HandledVersion,
		Metadata:       r.Metadata,
		ContentBytes:   r.ContentBytes,
		TerminalAt:     moment(r.TerminalAt),
		Phase:          engine.Phase(r.Phase),
		QueuedAt:       moment(r.QueuedAt),
		DueAt:          moment(r.DueAt),
		EnqueueCount:   r.EnqueueCount,
		LeaseEpoch:     r.LeaseEpoch,
		WriteSeq:       r.WriteSeq,
		Holder:         r.Holder,
		Attempt:        r.Attempt,
		TurnStartedAt:  moment(r.TurnStartedAt),
		Traceparent:    r.Traceparent,
		GrantHash:      r.GrantHash,
	}
}

// mutableColumns are the columns that an update replaces, by their names.
func mutableColumns(tasks []*engine.Task) args {
	return args{
		"id":              column(tasks, func(t *engine.Task) pgtype.UUID { return taskID(t.ID) }),
		"state":           column(tasks, func(t *engine.Task) int16 { return stateNumber(t.State) }),
		"status_version":  column(tasks, func(t *engine.Task) int64 { return t.StatusVersion }),
		"status_time":     column(tasks, func(t *engine.Task) pgtype.Timestamptz { return stamp(t.StatusTime) }),
		"version":         column(tasks, func(t *engine.Task) int64 { return t.Version }),
		"message_version": column(tasks, func(t *engine.Task) int64 { return t.MessageVersion }),
		"handled_version": column(tasks, func(t *engine.Task) int64 { return t.HandledVersion }),
		"metadata":        column(tasks, func(t *engine.Task) []byte { return t.Metadata }),
		"content_bytes":   column(tasks, func(t *engine.Task) int64 { return t.ContentBytes }),
		"terminal_at":     column(tasks, func(t *engine.Task) pgtype.Timestamptz { return stamp(t.TerminalAt) }),
		"phase":           column(tasks, func(t *engine.Task) int16 { return int16(t.Phase) }),
		"queued_at":       column(tasks, func(t *engine.Task) pgtype.Timestamptz { return stamp(t.QueuedAt) }),
		"due_at":          column(tasks, func(t *engine.Task) pgtype.Timestamptz { return stamp(t.DueAt) }),
		"enqueue_count":   column(tasks, func(t *engine.Task) int64 { return t.EnqueueCount }),
		"lease_epoch":     column(tasks, func(t *engine.Task) int64 { return t.LeaseEpoch }),
		"write_seq":       column(tasks, func(t *engine.Task) int64 { return t.WriteSeq }),
		"holder":          column(tasks, func(t *engine.Task) string { return t.Holder }),
		"attempt":         column(tasks, func(t *engine.Task) int32 { return t.Attempt }),
		"turn_started_at": column(tasks, func(t *engine.Task) pgtype.Timestamptz { return stamp(t.TurnStartedAt) }),
		"traceparent":     column(tasks, func(t *engine.Task) string { return t.Traceparent }),
		"grant_hash":      column(tasks, func(t *engine.Task) []byte { return t.GrantHash }),
	}
}

// allColumns are the columns of new rows.
func allColumns(tasks []*engine.Task) args {
	a := mutableColumns(tasks)
	a["tenant"] = column(tasks, func(t *engine.Task) string { return t.Tenant })
	a["agent"] = column(tasks, func(t *engine.Task) string { return t.Agent })
	a["owner"] = column(tasks, func(t *engine.Task) string { return t.Owner })
	a["context_id"] = column(tasks, func(t *engine.Task) string { return t.ContextID })
	a["created_at"] = column(tasks, func(t *engine.Task) pgtype.Timestamptz { return stamp(t.CreatedAt) })
	return a
}

// changedColumns are the columns of replaced rows and what they must still be.
func changedColumns(updates []engine.TaskUpdate) args {
	a := mutableColumns(column(updates, func(u engine.TaskUpdate) *engine.Task { return u.Task }))
	a["read_version"] = column(updates, func(u engine.TaskUpdate) int64 { return u.ReadVersion })
	a["read_lease_epoch"] = column(updates, func(u engine.TaskUpdate) int64 { return u.ReadLeaseEpoch })
	a["wanted"] = int64(len(updates))
	return a
}
