package store

import (
	"context"
	"fmt"
	"time"

	"github.com/errandhq/errand/pkg/a2aerr"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/proto"
)

// StoreReplies keeps direct Messages as the answers to senders' messages. The
// first commit under a message's dedupe key wins, task or Message, and is the
// answer.
func (s *Store) StoreReplies(
	ctx context.Context, requests []*taskstorev1.StoreReplyRequest,
) []Result[*taskstorev1.StoreReplyResponse] {
	return write(ctx, s, "store reply", requests, s.newReply, s.replied)
}

type reply struct {
	scope      engine.Scope
	direct     engine.Direct
	dedupe     dedupe
	contextTTL time.Duration

	refused   error
	duplicate *engine.Dedupe
}

func (s *Store) newReply(_ context.Context, r *taskstorev1.StoreReplyRequest) (*reply, error) {
	if err := s.checkReply(r); err != nil {
		return nil, err
	}
	scope, err := s.scope(r.GetScope())
	if err != nil {
		return nil, err
	}
	direct := engine.Direct{
		ID: s.NewID(),
		Key: engine.ContextKey{
			Tenant: scope.Tenant, Owner: r.GetScope().GetSubject(), Agent: scope.Agent, ContextID: r.GetReply().GetContextId(),
		},
	}
	message := proto.CloneOf(r.GetMessage())
	message.ContextId = direct.Key.ContextID
	if direct.Message, err = proto.Marshal(message); err != nil {
		return nil, fmt.Errorf("encode message: %w", err)
	}
	if direct.Reply, err = proto.Marshal(r.GetReply()); err != nil {
		return nil, fmt.Errorf("encode reply: %w", err)
	}
	d, err := newDedupe(r.GetDedupe(), r.GetScope(), r.GetMessage(), r.GetFingerprint())
	return &reply{scope: scope, direct: direct, dedupe: d, contextTTL: s.ContextTTL}, err
}

func (s *Store) checkReply(r *taskstorev1.StoreReplyRequest) error {
	if err := s.checkMessage(r.GetScope(), r.GetMessage()); err != nil {
		return err
	}
	if r.GetReply() == nil {
		return a2aerr.Invalid("reply", "must be present")
	}
	if err := s.checkID("reply.contextId", r.GetReply().GetContextId()); err != nil {
		return err
	}
	if err := s.checkHistoryLength(r.HistoryLength); err != nil {
		return err
	}
	return s.checkSize("reply", r.GetReply(), s.Agents.Limits.Event)
}

func (c *reply) Keys() []any { return c.dedupe.keys() }

func (c *reply) Size() int { return len(c.direct.Message) + len(c.direct.Reply) }

func (c *reply) selects(now time.Time, sel *engine.Selection) {
	c.dedupe.reserve(now, sel, engine.Dedupe{DirectID: c.direct.ID})
}

func (c *reply) decide(now time.Time, rows *engine.Loaded) decision {
	c.duplicate, c.refused = c.dedupe.find(rows)
	if c.duplicate != nil || c.refused != nil {
		return decision{}
	}
	c.direct.CreatedAt = now
	return decision{changes: engine.Changes{
		Directs: []engine.Direct{c.direct},
		TouchContexts: []engine.Context{{
			ContextKey: c.direct.Key, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(c.contextTTL),
		}},
	}}
}

func (s *Store) replied(
	ctx context.Context, r *taskstorev1.StoreReplyRequest, c *reply,
) (*taskstorev1.StoreReplyResponse, error) {
	if c.refused != nil {
		return nil, c.refused
	}
	if c.duplicate == nil {
		return &taskstorev1.StoreReplyResponse{
			Outcome: &taskstorev1.StoreReplyResponse_Reply{Reply: r.GetReply()},
		}, nil
	}
	made, err := s.madeOf(ctx, c.scope, *c.duplicate, r.HistoryLength)
	if err != nil {
		return nil, err
	}
	answer := &taskstorev1.StoreReplyResponse{
		Version: made.version, AcceptedVersion: c.duplicate.AcceptedVersion, Duplicate: true,
	}
	if made.reply != nil {
		answer.Outcome = &taskstorev1.StoreReplyResponse_Reply{Reply: made.reply}
	} else {
		answer.Outcome = &taskstorev1.StoreReplyResponse_Task{Task: made.task}
	}
	return answer, nil
}
