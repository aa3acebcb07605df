package client_test

import (
	"context"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/client"
)

func ExampleClient_Send() {
	ctx := context.Background()
	c, err := client.New(ctx, "http://localhost:8080", client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	response, err := c.Send(ctx, &a2apb.SendMessageRequest{Message: client.NewMessage(client.Text("order 3 mugs"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	if task := response.GetTask(); task != nil {
		fmt.Println(task.GetId(), task.GetStatus().GetState())
	} else {
		fmt.Println(response.GetMessage().GetParts()[0].GetText())
	}
}

func ExampleClient_Stream() {
	ctx := context.Background()
	c, err := client.New(ctx, "http://localhost:8080", client.Options{Bindings: []string{client.GRPC}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	request := &a2apb.SendMessageRequest{Message: client.NewMessage(client.Text("reconcile"))}
	for update, err := range c.Stream(ctx, request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if status := update.Event.GetStatusUpdate().GetStatus(); status != nil {
			fmt.Println(status.GetState())
		}
	}
}
