// Package secret holds values that must not be shown. They come from the environment,
// or from a file that the environment names (security 9.3.1).
package secret

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
)

const mask = "[secret]"

// A Value is a secret. Every way of printing or encoding it produces a mask; only
// Reveal returns the secret. A Value from a file can be updated, together with all
// its copies: see [Follow].
//
// The secret is behind a pointer, of which fmt prints the address: in an unexported field
// of another struct, and for %p, fmt does not call the methods of a Value.
type Value struct{ c *cell }

// A cell is shared by the copies of a Value.
type cell struct {
	text   atomic.Pointer[string] // never nil
	origin *origin                // nil if the secret did not come from a file
}

// New returns a secret with the text v. It is unset if v is empty.
func New(v string) Value {
	if v == "" {
		return Value{}
	}
	c := &cell{}
	c.text.Store(&v)
	return Value{c}
}

// Reveal returns the text of the secret. Call it for each use and do not store the
// result: the secret may be updated.
func (s Value) Reveal() string {
	if s.c == nil {
		return ""
	}
	return *s.c.text.Load()
}

// Keys returns the lines of the secret, which are the new and the old key during a rotation
// (security 9.3.5), or one unset secret.
func (s Value) Keys() []Value {
	var keys []Value
	for line := range strings.Lines(s.Reveal()) {
		if key := New(strings.TrimRight(line, "\r\n")); key.IsSet() {
			keys = append(keys, key)
		}
	}
	if keys == nil {
		keys = []Value{{}}
	}
	return keys
}

// CheckKeys refuses a secret with more than two keys.
func CheckKeys(s Value) error {
	if len(s.Keys()) > 2 {
		return errors.New("it holds more than two keys: write the new one in the first line, the old one in the second")
	}
	return nil
}

// IsSet reports whether the secret has a text.
func (s Value) IsSet() bool { return s.c != nil }

// String returns the mask.
func (s Value) String() string { return mask }

// GoString returns the mask.
func (s Value) GoString() string { return mask }

// Format writes the mask for every verb.
func (s Value) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(mask)) }

// MarshalText returns the mask; it covers JSON, YAML and XML.
func (s Value) MarshalText() ([]byte, error) { return []byte(mask), nil }

// LogValue returns the mask.
func (s Value) LogValue() slog.Value { return slog.StringValue(mask) }
