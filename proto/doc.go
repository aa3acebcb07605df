// Package proto is the root of the module that holds Errand's wire contracts:
// the protocol buffer sources under errand/ and the Go code generated from them
// under gen/.
package proto
