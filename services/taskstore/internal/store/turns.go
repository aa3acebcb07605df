package store

import (
	"context"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/taskstore/internal/engine"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// maxTurns bounds an answer; each turn comes with its contents.
const maxTurns = 100

// ListTurns reads a context's newest turns: tasks and direct Messages.
func (s *Store) ListTurns(ctx context.Context, r *taskstorev1.ListTurnsRequest) (*taskstorev1.ListTurnsResponse, error) {
	answer, err := s.listTurns(ctx, r)
	return answer, wrap("list turns", err)
}

func (s *Store) listTurns(ctx context.Context, r *taskstorev1.ListTurnsRequest) (*taskstorev1.ListTurnsResponse, error) {
	key, err := s.contextKey(r.GetScope(), r.GetContextId())
	if err != nil {
		return nil, err
	}
	limit := int(r.GetLimit())
	if limit <= 0 || limit > maxTurns {
		limit = maxTurns
	}
	turns, err := s.engine.ReadTurns(ctx, key, limit)
	if err != nil {
		return nil, err
	}
	tasks, err := s.tasksOf(ctx, key, turns)
	if err != nil {
		return nil, err
	}
	answer := &taskstorev1.ListTurnsResponse{}
	for _, row := range turns {
		if row.Direct == nil && tasks[row.TaskID] == nil {
			break // the older ones would not fit
		}
		turn := &taskstorev1.Turn{Time: timestamppb.New(row.CreatedAt)}
		if row.Direct == nil {
			turn.Kind = &taskstorev1.Turn_Task{Task: tasks[row.TaskID]}
		} else if turn.Kind, err = toDirectTurn(row.Direct); err != nil {
			return nil, err
		}
		answer.Turns = append(answer.Turns, turn)
	}
	return answer, nil
}

// tasksOf reads the tasks of turns, the newest ones that fit an answer.
func (s *Store) tasksOf(ctx context.Context, key engine.ContextKey, turns []engine.Turn) (map[string]*a2apb.Task, error) {
	var ids []string
	for _, turn := range turns {
		if turn.Direct == nil {
			ids = append(ids, turn.TaskID)
		}
	}
	scope := engine.Scope{Tenant: key.Tenant, Agent: key.Agent, Owner: key.Owner}
	rows, err := s.engine.ReadTasks(ctx, scope, ids, engine.Detail{})
	if err != nil {
		return nil, err
	}
	found, err := s.engine.ReadTasks(ctx, scope, idsOf(s.fitting(rows, maxTurns)), s.detail(nil))
	if err != nil {
		return nil, err
	}
	tasks := make(map[string]*a2apb.Task, len(found))
	for _, snapshot := range found {
		if tasks[snapshot.Task.ID], err = toTask(snapshot); err != nil {
			return nil, err
		}
	}
	return tasks, nil
}

func idsOf(rows []*engine.Snapshot) []string {
	ids := make([]string, len(rows))
	for i, snapshot := range rows {
		ids[i] = snapshot.Task.ID
	}
	return ids
}

func toDirectTurn(d *engine.Direct) (*taskstorev1.Turn_Direct, error) {
	exchange := &taskstorev1.DirectExchange{Message: &a2apb.Message{}, Reply: &a2apb.Message{}}
	if err := decode(d.Message, exchange.Message); err != nil {
		return nil, err
	}
	return &taskstorev1.Turn_Direct{Direct: exchange}, decode(d.Reply, exchange.Reply)
}
