package client_test

import (
	"context"
	"fmt"

	a2apb "github.com/a2aproject/a2a-go/v2/a2apb/v1"

	"github.com/errandhq/errand/pkg/client"
	"github.com/errandhq/errand/pkg/client/clienttest"
)

// An agent that answers with what it was told; any A2A 1.0 agent will do.
func exampleAgent() *clienttest.Agent {
	agent, err := clienttest.New()
	if err != nil {
		panic(err)
	}
	return agent
}

func ExampleClient_Send() {
	agent := exampleAgent()
	defer agent.Close()
	ctx := context.Background()

	c, err := client.New(ctx, agent.URL, client.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	response, err := c.Send(ctx, &a2apb.SendMessageRequest{
		Message: client.NewMessage(client.Text("3 mugs")),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if task := response.GetTask(); task != nil {
		fmt.Println(task.GetStatus().GetState())
		for _, part := range task.GetArtifacts()[0].GetParts() {
			fmt.Print(part.GetText())
		}
		fmt.Println()
	}
	// Output:
	// TASK_STATE_COMPLETED
	// 3 mugs
}

func ExampleClient_Stream() {
	agent := exampleAgent()
	defer agent.Close()
	ctx := context.Background()

	c, err := client.New(ctx, agent.URL, client.Options{Bindings: []string{client.GRPC}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer c.Close()

	request := &a2apb.SendMessageRequest{Message: client.NewMessage(client.Text("3 mugs"))}
	for update, err := range c.Stream(ctx, request) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch event := update.Event.GetPayload().(type) {
		case *a2apb.StreamResponse_Task:
			fmt.Println("task", event.Task.GetStatus().GetState())
		case *a2apb.StreamResponse_StatusUpdate:
			fmt.Println("status", event.StatusUpdate.GetStatus().GetState())
		case *a2apb.StreamResponse_ArtifactUpdate:
			fmt.Printf("chunk %q\n", event.ArtifactUpdate.GetArtifact().GetParts()[0].GetText())
		}
	}
	// Output:
	// task TASK_STATE_SUBMITTED
	// status TASK_STATE_WORKING
	// chunk "3"
	// chunk " mugs"
	// status TASK_STATE_COMPLETED
}
