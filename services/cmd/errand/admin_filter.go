package main

import (
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
)

// deadFilter selects dead letters; what is not given doesn't limit.
type deadFilter struct {
	Tenant string    `help:"Only tasks of this tenant." placeholder:"ID"`
	Agent  string    `help:"Only tasks of this agent." placeholder:"NAME"`
	Reason string    `help:"Only tasks given up for this reason: max_attempts, max_runtime or input_timeout." enum:",max_attempts,max_runtime,input_timeout" default:"" placeholder:"REASON"`
	Since  time.Time `help:"Only tasks given up since then (RFC 3339)." placeholder:"TIME" format:"2006-01-02T15:04:05Z07:00"`
	Until  time.Time `help:"Only tasks given up before then (RFC 3339)." placeholder:"TIME" format:"2006-01-02T15:04:05Z07:00"`
}

func (f *deadFilter) given() bool { return *f != deadFilter{} }

func (f *deadFilter) proto() *taskstorev1.DeadLetterFilter {
	filter := &taskstorev1.DeadLetterFilter{Tenant: f.Tenant, Agent: f.Agent, Reason: f.Reason}
	if !f.Since.IsZero() {
		filter.Since = timestamppb.New(f.Since)
	}
	if !f.Until.IsZero() {
		filter.Until = timestamppb.New(f.Until)
	}
	return filter
}
