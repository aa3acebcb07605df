// Package services is the root of the module of Errand's services and binaries.
package services
