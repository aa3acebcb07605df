package config

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is written as Go writes durations: 250ms, 30s, 168h.
type Duration time.Duration

// UnmarshalJSON reads a duration from its text form.
func (d *Duration) UnmarshalJSON(b []byte) error {
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return fmt.Errorf("a duration is text such as 30s: %w", err)
	}
	v, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("read duration: %w", err)
	}
	*d = Duration(v)
	return nil
}

// MarshalJSON writes the text form.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(time.Duration(d).String()) //nolint:wrapcheck // a string always encodes
}

// Value is d for the standard library.
func (d Duration) Value() time.Duration { return time.Duration(d) }
