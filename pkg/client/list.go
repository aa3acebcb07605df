package client

import (
	"context"
	"fmt"
	"iter"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"
	"google.golang.org/protobuf/proto"
)

// ListPage reads one page of tasks (A2A §3.1.4).
func (c *Client) ListPage(ctx context.Context, request *a2apb.ListTasksRequest) (*a2apb.ListTasksResponse, error) {
	page := &a2apb.ListTasksResponse{}
	if err := c.retry(ctx, func() error { return c.call(ctx, opList, request, page) }); err != nil {
		return nil, err
	}
	return page, nil
}

// List reads all pages from the request's on, task by task. It ends with the
// first error.
func (c *Client) List(ctx context.Context, request *a2apb.ListTasksRequest) iter.Seq2[*a2apb.Task, error] {
	return func(yield func(*a2apb.Task, error) bool) {
		request := proto.CloneOf(request)
		for {
			page, err := c.ListPage(ctx, request)
			if err == nil && page.GetNextPageToken() != "" && page.GetNextPageToken() == request.GetPageToken() {
				err = fmt.Errorf("%w: a page names itself as the next one", ErrProtocol)
			}
			if err != nil {
				yield(nil, err)
				return
			}
			for _, t := range page.GetTasks() {
				if !yield(t, nil) {
					return
				}
			}
			if request.PageToken = page.GetNextPageToken(); request.GetPageToken() == "" {
				return
			}
		}
	}
}
