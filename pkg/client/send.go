package client

import (
	"context"
	"errors"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
)

// Send sends a message and returns the agent's answer: a Task, or a Message for
// an exchange without a task (A2A §3.1.1). A message without an id gets one; if
// the answer is lost it is sent again under the same id.
//
// Unless the request asks to return immediately, the server answers when the
// task is terminal or waits for input; one that gives up waiting before answers
// with the task as it is. Wait goes on from there.
func (c *Client) Send(ctx context.Context, request *a2apb.SendMessageRequest) (*a2apb.SendMessageResponse, error) {
	request = prepared(request)
	response := &a2apb.SendMessageResponse{}
	if err := c.retry(ctx, func() error { return c.call(ctx, opSend, request, response) }); err != nil {
		return nil, err
	}
	if response.GetPayload() == nil {
		return nil, fmt.Errorf("%w: neither a task nor a message", ErrProtocol)
	}
	return response, nil
}

// Get reads a task (A2A §3.1.3).
func (c *Client) Get(ctx context.Context, request *a2apb.GetTaskRequest) (*a2apb.Task, error) {
	return c.taskOf(ctx, opGet, request)
}

// Cancel asks for a task to be canceled (A2A §3.1.5). A lost answer is asked for
// again; a server that refuses to cancel what it has canceled is asked for the
// task instead.
func (c *Client) Cancel(ctx context.Context, request *a2apb.CancelTaskRequest) (*a2apb.Task, error) {
	t, err := c.taskOf(ctx, opCancel, request)
	if !errors.Is(err, ErrTaskNotCancelable) {
		return t, err
	}
	t, getErr := c.Get(ctx, &a2apb.GetTaskRequest{Tenant: request.GetTenant(), Id: request.GetId()})
	if getErr == nil && t.GetStatus().GetState() == a2apb.TaskState_TASK_STATE_CANCELED {
		return t, nil
	}
	return nil, err
}
