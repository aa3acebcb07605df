package queue

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/errandhq/errand/pkg/natsconn"
	"github.com/errandhq/errand/pkg/task"
)

// Depths tells how many work messages the stream holds for each tenant of an
// agent, delivered but unacknowledged ones among them. Tenants without messages
// are left out; a stream that has gone holds none.
func Depths(ctx context.Context, nc *nats.Conn, agent string) (map[string]uint64, error) {
	if !task.ValidName(agent) {
		return nil, fmt.Errorf("agent %.*q: %w", task.MaxName, agent, ErrBadName)
	}
	return depths(ctx, nc, workPrefix+"."+agent+".*")
}

// Depth is Depths for one tenant.
func Depth(ctx context.Context, nc *nats.Conn, agent, tenant string) (uint64, error) {
	subject, err := workSubject(agent, tenant)
	if err != nil {
		return 0, err
	}
	byTenant, err := depths(ctx, nc, subject)
	return byTenant[tenant], err
}

func depths(ctx context.Context, nc *nats.Conn, filter string) (map[string]uint64, error) {
	stream, err := workStream(ctx, nc)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return map[string]uint64{}, nil
	}
	if err != nil {
		return nil, err
	}
	info, err := stream.Info(ctx, jetstream.WithSubjectFilter(filter))
	if err != nil {
		return nil, fmt.Errorf("list the work stream's subjects: %w", natsconn.Reason(err))
	}
	byTenant := make(map[string]uint64, len(info.State.Subjects))
	for subject, count := range info.State.Subjects {
		byTenant[subject[strings.LastIndexByte(subject, '.')+1:]] = count
	}
	return byTenant, nil
}
