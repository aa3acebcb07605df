package postgres

import (
	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"github.com/jackc/pgx/v5/pgtype"
)

type dedupeRow struct {
	Tenant          string
	Subject         string
	Agent           string
	MessageID       string
	Fingerprint     []byte
	TaskID          pgtype.UUID
	AcceptedVersion int64
	DirectID        string
	CreatedAt       pgtype.Timestamptz
}

func (r *dedupeRow) dedupe() engine.Dedupe {
	return engine.Dedupe{
		DedupeKey:       engine.DedupeKey{Tenant: r.Tenant, Subject: r.Subject, Agent: r.Agent, MessageID: r.MessageID},
		Fingerprint:     r.Fingerprint,
		TaskID:          r.TaskID.String(),
		AcceptedVersion: r.AcceptedVersion,
		DirectID:        r.DirectID,
		CreatedAt:       moment(r.CreatedAt),
	}
}

type dedupeKeyRow struct {
	Tenant    string
	Subject   string
	Agent     string
	MessageID string
}

type leaseRow struct {
	TaskID     string
	LeaseEpoch int64
	Holder     string
	ExpiresAt  pgtype.Timestamptz
}

func (r *leaseRow) lease() engine.Lease {
	return engine.Lease{
		LeaseRef:  engine.LeaseRef{TaskID: r.TaskID, Epoch: r.LeaseEpoch},
		Holder:    r.Holder,
		ExpiresAt: moment(r.ExpiresAt),
	}
}

type leaseRefRow struct {
	TaskID     string
	LeaseEpoch int64
}

type artifactRow struct {
	TaskID     string
	ArtifactID string
	Position   int64
	Total      int64
}

type messageRow struct {
	TaskID  string
	Version int64
	Kind    int16
	Data    []byte
	Request []byte
}

func (r *messageRow) message() engine.Message {
	return engine.Message{
		TaskID:  r.TaskID,
		Version: r.Version,
		Kind:    engine.MessageKind(r.Kind),
		Data:    r.Data,
		Request: r.Request,
	}
}

type chunkRow struct {
	TaskID     string
	ArtifactID string
	Version    int64
	Position   int64
	Total      int64
	Data       []byte
}

func (r *chunkRow) chunk() engine.Chunk {
	return engine.Chunk{
		ArtifactKey: engine.ArtifactKey{TaskID: r.TaskID, ArtifactID: r.ArtifactID},
		Version:     r.Version,
		Position:    r.Position,
		Total:       r.Total,
		Data:        r.Data,
	}
}

type eventRow struct {
	Tenant     string
	TaskID     string
	Version    int64
	CreatedAt  pgtype.Timestamptz
	Publisher  string
	PublishSeq int64
	Data       []byte
}

func (r *eventRow) event() engine.Event {
	return engine.Event{
		Tenant:    r.Tenant,
		TaskID:    r.TaskID,
		Version:   r.Version,
		CreatedAt: moment(r.CreatedAt),
		Publisher: r.Publisher,
		Seq:       r.PublishSeq,
		Data:      r.Data,
	}
}

type headRow struct {
	ID      string
	Version int64
	State   int16
}

func (r *headRow) head() engine.Head {
	return engine.Head{ID: r.ID, Version: r.Version, State: a2apb.TaskState(r.State)}
}

type contextRow struct {
	Tenant    string
	Owner     string
	Agent     string
	ContextID string
	State     []byte
	Revision  int64
	CreatedAt pgtype.Timestamptz
	UpdatedAt pgtype.Timestamptz
	ExpiresAt pgtype.Timestamptz
}

func (r *contextRow) context() *engine.Context {
	return &engine.Context{
		ContextKey: engine.ContextKey{Tenant: r.Tenant, Owner: r.Owner, Agent: r.Agent, ContextID: r.ContextID},
		State:      r.State,
		Revision:   r.Revision,
		CreatedAt:  moment(r.CreatedAt),
		UpdatedAt:  moment(r.UpdatedAt),
		ExpiresAt:  moment(r.ExpiresAt),
	}
}

type directRow struct {
	ID        string
	Tenant    string
	Owner     string
	Agent     string
	ContextID string
	CreatedAt pgtype.Timestamptz
	Message   []byte
	Reply     []byte
}

func (r *directRow) direct() engine.Direct {
	return engine.Direct{
		ID:        r.ID,
		Key:       engine.ContextKey{Tenant: r.Tenant, Owner: r.Owner, Agent: r.Agent, ContextID: r.ContextID},
		CreatedAt: moment(r.CreatedAt),
		Message:   r.Message,
		Reply:     r.Reply,
	}
}

type renewalRow struct {
	Place          int64
	Held           bool
	Current        bool
	State          int16
	MessageVersion int64
}

func (r *renewalRow) renewal() engine.Renewal {
	return engine.Renewal{
		Held: r.Held, Current: r.Current, State: a2apb.TaskState(r.State), MessageVersion: r.MessageVersion,
	}
}
