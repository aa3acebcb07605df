package config

import "time"

// Limits is the one table of bounds. Sizes are in bytes, counts are counts; what
// the agents file leaves out has its default.
type Limits struct {
	// Of a request body; larger ones answer 413 or RESOURCE_EXHAUSTED.
	Body int `json:"body"`
	// Of one encoded event: a message, a status or a chunk of an artifact. At
	// most 4 MiB, which is what A2A clients read of one server-sent event.
	Event int `json:"event"`
	// Of what one task holds: artifacts and messages, the sender's counted twice.
	Artifacts int `json:"artifacts"`
	// Of the parts of one message.
	Parts int `json:"parts"`
	// Of nested values in JSON.
	Depth int `json:"depth"`
	// Of values in one JSON body, members of metadata and data included.
	Values int `json:"values"`
	// Of ids that senders choose: message, context, task and config ids.
	ID int `json:"id"`
	// Of a message's referenceTaskIds, extensions and acceptedOutputModes, each.
	References int `json:"references"`
	// Of messages that a task is returned with when no historyLength is given.
	History int `json:"history"`
	// Of what an agent keeps in a context.
	ContextState int `json:"context_state"`
	// Of requests that one gateway works on at the same time. One that waits for a
	// task is counted by Streams or Waits instead.
	Requests int `json:"requests"`
	// Of the bodies of these requests, and of large answers that wait for their
	// readers, all together.
	BodyMemory int `json:"body_memory"`
	// Of calls of one method that a task store or notifier serves at the same time.
	Calls int `json:"calls"`
	// Of changes that wait for a transaction at one task store, and of their bytes.
	WaitingWrites int `json:"waiting_writes"`
	WaitingBytes  int `json:"waiting_bytes"`
	// Of open streams of one gateway.
	Streams int `json:"streams"`
	// Of blocking sends that wait at one gateway.
	Waits int `json:"waits"`
	// Of events that wait for one slow subscriber, before it gets a snapshot instead.
	SubscriberBuffer int `json:"subscriber_buffer"`
	// How long a call to another service may take before that one counts as out of
	// reach.
	Call Duration `json:"call"`
	// How long a blocking send waits before it answers with the task as it is.
	Wait Duration `json:"wait"`
	// How long one event may take to be written to a subscriber.
	Write Duration `json:"write"`
	// Between the comments that keep an idle stream alive.
	KeepAlive Duration `json:"keep_alive"`
	// How long a message may wait for an executor that answers it directly.
	Direct Duration `json:"direct"`
}

// DefaultLimits is what the agents file doesn't say.
func DefaultLimits() Limits {
	return Limits{
		Body:             4 << 20,
		Event:            4 << 20,
		Artifacts:        64 << 20,
		Parts:            1000,
		Depth:            100,
		Values:           100_000,
		ID:               256,
		References:       100,
		History:          1000,
		ContextState:     64 << 10,
		Requests:         2000,
		BodyMemory:       256 << 20,
		Calls:            2000,
		WaitingWrites:    20_000,
		WaitingBytes:     256 << 20,
		Streams:          20_000,
		Waits:            10_000,
		SubscriberBuffer: 256,
		Call:             Duration(10 * time.Second),
		Wait:             Duration(5 * time.Minute),
		Write:            Duration(10 * time.Second),
		KeepAlive:        Duration(4 * time.Second),
		Direct:           Duration(30 * time.Second),
	}
}

// Internal is the bound of one message between services, in bytes: a whole task
// with its artifacts, and room for its history.
func (l Limits) Internal() int {
	return l.Artifacts + 4*l.Event
}
