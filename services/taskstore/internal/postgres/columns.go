package postgres

import (
	"maps"

	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5/pgtype"
)

func dedupeKeyColumns(keys []engine.DedupeKey) args {
	return args{
		"tenants":     column(keys, func(k engine.DedupeKey) pgtype.Text { return key(k.Tenant) }),
		"subjects":    column(keys, func(k engine.DedupeKey) pgtype.Text { return key(k.Subject) }),
		"agents":      column(keys, func(k engine.DedupeKey) pgtype.Text { return key(k.Agent) }),
		"message_ids": column(keys, func(k engine.DedupeKey) pgtype.Text { return key(k.MessageID) }),
	}
}

// outcomeColumns are what a record says, beside its key and age.
func outcomeColumns(records []engine.Dedupe) args {
	a := dedupeKeyColumns(column(records, func(d engine.Dedupe) engine.DedupeKey { return d.DedupeKey }))
	maps.Copy(a, args{
		"fingerprints":      column(records, func(d engine.Dedupe) []byte { return filled(d.Fingerprint) }),
		"task_ids":          column(records, func(d engine.Dedupe) pgtype.UUID { return taskID(d.TaskID) }),
		"accepted_versions": column(records, func(d engine.Dedupe) int64 { return d.AcceptedVersion }),
		"direct_ids":        column(records, func(d engine.Dedupe) string { return d.DirectID }),
	})
	return a
}

func dedupeColumns(records []engine.Dedupe) args {
	a := outcomeColumns(records)
	a["created_ats"] = column(records, func(d engine.Dedupe) pgtype.Timestamptz { return stamp(d.CreatedAt) })
	return a
}

func artifactKeyColumns(keys []engine.ArtifactKey) args {
	return args{
		"task_ids":     column(keys, func(k engine.ArtifactKey) pgtype.UUID { return taskID(k.TaskID) }),
		"artifact_ids": column(keys, func(k engine.ArtifactKey) pgtype.Text { return key(k.ArtifactID) }),
	}
}

func messageColumns(messages []engine.Message) args {
	return args{
		"task_ids": column(messages, func(m engine.Message) pgtype.UUID { return taskID(m.TaskID) }),
		"versions": column(messages, func(m engine.Message) int64 { return m.Version }),
		"kinds":    column(messages, func(m engine.Message) int16 { return int16(m.Kind) }),
		"datas":    column(messages, func(m engine.Message) []byte { return filled(m.Data) }),
		"requests": column(messages, func(m engine.Message) []byte { return m.Request }),
	}
}

func chunkColumns(chunks []engine.Chunk) args {
	a := artifactKeyColumns(column(chunks, func(c engine.Chunk) engine.ArtifactKey { return c.ArtifactKey }))
	maps.Copy(a, args{
		"versions":  column(chunks, func(c engine.Chunk) int64 { return c.Version }),
		"positions": column(chunks, func(c engine.Chunk) int64 { return c.Position }),
		"totals":    column(chunks, func(c engine.Chunk) int64 { return c.Total }),
		"datas":     column(chunks, func(c engine.Chunk) []byte { return filled(c.Data) }),
	})
	return a
}

func eventColumns(events []engine.Event) args {
	return args{
		"tenants":      column(events, func(e engine.Event) string { return e.Tenant }),
		"task_ids":     column(events, func(e engine.Event) pgtype.UUID { return taskID(e.TaskID) }),
		"versions":     column(events, func(e engine.Event) int64 { return e.Version }),
		"created_ats":  column(events, func(e engine.Event) pgtype.Timestamptz { return stamp(e.CreatedAt) }),
		"publishers":   column(events, func(e engine.Event) string { return e.Publisher }),
		"publish_seqs": column(events, func(e engine.Event) int64 { return e.Seq }),
		"datas":        column(events, func(e engine.Event) []byte { return filled(e.Data) }),
	}
}

func leaseRefColumns(refs []engine.LeaseRef) args {
	return args{
		"task_ids":     column(refs, func(r engine.LeaseRef) pgtype.UUID { return taskID(r.TaskID) }),
		"lease_epochs": column(refs, func(r engine.LeaseRef) int64 { return r.Epoch }),
	}
}

func leaseColumns(leases []engine.Lease) args {
	a := leaseRefColumns(column(leases, func(l engine.Lease) engine.LeaseRef { return l.LeaseRef }))
	a["holders"] = column(leases, func(l engine.Lease) string { return l.Holder })
	a["expires_ats"] = column(leases, func(l engine.Lease) pgtype.Timestamptz { return stamp(l.ExpiresAt) })
	return a
}

func contextKeyColumns(keys []engine.ContextKey) args {
	return args{
		"tenants":     column(keys, func(k engine.ContextKey) pgtype.Text { return key(k.Tenant) }),
		"owners":      column(keys, func(k engine.ContextKey) pgtype.Text { return key(k.Owner) }),
		"agents":      column(keys, func(k engine.ContextKey) pgtype.Text { return key(k.Agent) }),
		"context_ids": column(keys, func(k engine.ContextKey) pgtype.Text { return key(k.ContextID) }),
	}
}

func contextColumns(contexts []engine.Context) args {
	a := contextKeyColumns(column(contexts, func(c engine.Context) engine.ContextKey { return c.ContextKey }))
	maps.Copy(a, args{
		"states":      column(contexts, func(c engine.Context) []byte { return c.State }),
		"revisions":   column(contexts, func(c engine.Context) int64 { return c.Revision }),
		"created_ats": column(contexts, func(c engine.Context) pgtype.Timestamptz { return stamp(c.CreatedAt) }),
		"updated_ats": column(contexts, func(c engine.Context) pgtype.Timestamptz { return stamp(c.UpdatedAt) }),
		"expires_ats": column(contexts, func(c engine.Context) pgtype.Timestamptz { return stamp(c.ExpiresAt) }),
	})
	return a
}

func directColumns(directs []engine.Direct) args {
	a := contextKeyColumns(column(directs, func(d engine.Direct) engine.ContextKey { return d.Key }))
	maps.Copy(a, args{
		"ids":         column(directs, func(d engine.Direct) string { return d.ID }),
		"created_ats": column(directs, func(d engine.Direct) pgtype.Timestamptz { return stamp(d.CreatedAt) }),
		"messages":    column(directs, func(d engine.Direct) []byte { return filled(d.Message) }),
		"replies":     column(directs, func(d engine.Direct) []byte { return filled(d.Reply) }),
	})
	return a
}
