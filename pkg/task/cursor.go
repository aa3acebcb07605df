package task

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"time"
)

// ErrCursor refuses a page token that this key didn't make for this list.
var ErrCursor = errors.New("page token is not valid for this list")

// Cursor is a position in a list that is ordered by status time descending,
// then id.
type Cursor struct {
	// Cut to milliseconds.
	Time time.Time
	ID   string
}

// CursorKey signs page tokens. Every task store of a cluster has the same; at
// least 16 bytes.
type CursorKey []byte

const (
	macSize  = 16
	timeSize = 8
)

// Encode makes the page token for c. A token is bound to the list that it was
// made for: its scope and filters, each one string.
func (k CursorKey) Encode(c Cursor, list ...string) string {
	payload := binary.BigEndian.AppendUint64(nil, uint64(c.Time.UnixMilli())) // read back the same way
	payload = append(payload, c.ID...)
	return base64.RawURLEncoding.EncodeToString(append(payload, k.mac(payload, list)...))
}

// Decode reads a page token; ErrCursor if it is not one of Encode's for the
// same list.
func (k CursorKey) Decode(token string, list ...string) (Cursor, error) {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || len(raw) < timeSize+macSize {
		return Cursor{}, ErrCursor
	}
	payload, mac := raw[:len(raw)-macSize], raw[len(raw)-macSize:]
	if !hmac.Equal(mac, k.mac(payload, list)) {
		return Cursor{}, ErrCursor
	}
	ms := binary.BigEndian.Uint64(payload)
	return Cursor{
		Time: time.UnixMilli(int64(ms)).UTC(), //nolint:gosec // as encoded
		ID:   string(payload[timeSize:]),
	}, nil
}

func (k CursorKey) mac(payload []byte, list []string) []byte {
	h := canonical{hmac.New(sha256.New, k)}
	h.text(string(payload))
	for _, s := range list {
		h.text(s)
	}
	return h.Sum(nil)[:macSize]
}
