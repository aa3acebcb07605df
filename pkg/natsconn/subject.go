package natsconn

import (
	"errors"
	"fmt"
	"strings"
)

// ErrBadToken means that a name can't be part of a subject as it stands.
var ErrBadToken = errors.New("not a subject token: want 1 to 128 letters, digits, '-' or '_'")

const maxToken = 128

// Subject joins a prefix and names to a subject. Names come from outside, and a
// dot, wildcard or line break in one would reach other subjects or break the
// protocol, so everything but plain names is refused.
func Subject(prefix string, names ...string) (string, error) {
	var b strings.Builder
	b.WriteString(prefix)
	for _, name := range names {
		if !isToken(name) {
			return "", fmt.Errorf("%.*q: %w", maxToken, name, ErrBadToken)
		}
		b.WriteByte('.')
		b.WriteString(name)
	}
	return b.String(), nil
}

func isToken(s string) bool {
	if s == "" || len(s) > maxToken {
		return false
	}
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (c < '0' || c > '9') && c != '-' && c != '_' {
			return false
		}
	}
	return true
}
