// Package agenttest runs an agent in memory, so that handlers can be tested
// without a cluster: messages in, tasks out, with what lies between (answers,
// cancels, drains, retries) in the hands of the test.
package agenttest
