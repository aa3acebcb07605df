package store

import (
	"context"
	"errors"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
)

// FindMessage tells what an earlier acceptance of a message made; the answer has
// no outcome if there was none.
func (s *Store) FindMessage(
	ctx context.Context, r *taskstorev1.FindMessageRequest,
) (*taskstorev1.FindMessageResponse, error) {
	answer, err := s.findMessage(ctx, r)
	return answer, wrap("find message", err)
}

func (s *Store) findMessage(
	ctx context.Context, r *taskstorev1.FindMessageRequest,
) (*taskstorev1.FindMessageResponse, error) {
	if err := s.checkScope(r.GetScope()); err != nil {
		return nil, err
	}
	if err := s.checkID("messageId", r.GetMessageId()); err != nil {
		return nil, err
	}
	if err := s.checkHistoryLength(r.HistoryLength); err != nil {
		return nil, err
	}
	scope, err := s.scope(r.GetScope())
	if err != nil {
		return nil, err
	}
	record, err := s.engine.ReadDedupe(ctx, dedupeKey(r.GetScope(), r.GetMessageId()))
	if errors.Is(err, engine.ErrNotFound) {
		return &taskstorev1.FindMessageResponse{}, nil
	}
	if err == nil {
		err = sameContent(record, r.GetFingerprint())
	}
	if err != nil {
		return nil, err
	}
	made, err := s.madeOf(ctx, scope, record, r.HistoryLength)
	if err != nil {
		return nil, err
	}
	answer := &taskstorev1.FindMessageResponse{Version: made.version, AcceptedVersion: record.AcceptedVersion}
	if made.reply != nil {
		answer.Outcome = &taskstorev1.FindMessageResponse_Reply{Reply: made.reply}
	} else {
		answer.Outcome = &taskstorev1.FindMessageResponse_Task{Task: made.task}
	}
	return answer, nil
}
