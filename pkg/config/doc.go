// Package config holds what all services of a cluster must agree on: the agents
// file and the table of limits in it. Its form is agents.schema.json.
package config
