// Package pkg is the root of the module of Errand's building blocks. They know
// no service; services and programs of users are built from them.
package pkg
