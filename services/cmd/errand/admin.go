package main

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/errandhq/errand/pkg/config"
	"github.com/errandhq/errand/pkg/telemetry"
	taskstorev1 "github.com/errandhq/errand/proto/gen/errand/taskstore/v1"
	"github.com/errandhq/errand/services/internal/link"
)

// adminCommand is for operators, who reach the internal port of a task store.
type adminCommand struct {
	Dead deadCommand `cmd:"" help:"Tasks that were given up."`
}

type deadCommand struct {
	List    deadListCommand    `cmd:"" help:"List tasks that were given up, the newest first."`
	Redrive deadRedriveCommand `cmd:"" help:"Run given-up tasks again, each as a new task of its owner; the old one stays as it is."`
}

// operator says which task store is meant and how it is spoken to.
type operator struct {
	TaskStore string `name:"taskstore" help:"Address of a task store; errand dev serves one at its --taskstore-listen." env:"ERRAND_TASKSTORE" default:"localhost:9091" placeholder:"ADDR"`
	Output    string `short:"o" help:"Output: text, or json, one object a line." enum:"text,json" default:"text"`
}

func (o *operator) json() bool { return o.Output == "json" }

// connect prepares a connection, which the caller closes.
func (o *operator) connect() (*grpc.ClientConn, taskstorev1.AdminServiceClient, error) {
	conn, err := link.TaskStore(o.TaskStore, nil, config.DefaultLimits(), telemetry.Disabled())
	if err != nil {
		return nil, nil, err //nolint:wrapcheck // it says what was tried
	}
	return conn, taskstorev1.NewAdminServiceClient(conn), nil
}

// explain says for people why a call failed.
func (o *operator) explain(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err() //nolint:wrapcheck // an interrupt, which needs no words
	}
	s := status.Convert(err)
	text := s.Message()
	for _, detail := range s.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				if line := v.GetField() + ": " + v.GetDescription(); !strings.Contains(text, line) {
					text += "; " + line
				}
			}
		}
	}
	switch {
	case s.Code() == codes.Unavailable && len(s.Details()) == 0:
		return fmt.Errorf("can't reach a task store at %s (--taskstore): %s", o.TaskStore, text)
	case s.Code() == codes.Unimplemented:
		return fmt.Errorf("%s is no task store of this version: %s", o.TaskStore, text)
	default:
		return fmt.Errorf("task store at %s: %s", o.TaskStore, text)
	}
}
