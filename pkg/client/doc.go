// Package client sends messages to A2A 1.0 agents and follows the tasks that
// come of them. It speaks the three bindings of the protocol, chosen by the
// agent's card, in the official wire types.
//
// It is made for networks that fail: a message whose answer was lost is sent
// again under the same messageId, a stream that was cut is resumed where it
// was, and where there are no streams the task is polled. Servers that
// de-duplicate by messageId, as Errand does, make a repeated send harmless;
// for others set Options.Retry.Attempts to 1.
package client
