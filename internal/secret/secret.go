// Package secret holds values that must not be shown, and knows where they may
// come from: the environment, or a file the environment names (security 9.3).
package secret

import (
	"fmt"
	"log/slog"
	"sync/atomic"
)

const mask = "[secret]"

// A Value is a secret as it is now. Every way of printing or encoding it gives
// the mask; only Reveal gives the secret. One that came from a file can follow
// that file, and all copies of the Value with it: see [Follow].
//
// The secret hangs on a pointer because fmt prints the fields of a Value
// without asking its methods where it may not call them: inside an unexported
// field of another struct, and for %p. There it finds an address.
type Value struct{ c *cell }

// A cell is what the copies of a Value share.
type cell struct {
	text   atomic.Pointer[string] // never nil
	origin *origin                // nil if the secret can never change
}

// New wraps v. An empty v makes an unset secret.
func New(v string) Value {
	if v == "" {
		return Value{}
	}
	c := &cell{}
	c.text.Store(&v)
	return Value{c}
}

// Reveal returns the secret itself. Call it where the secret is used, each time,
// and keep the result no longer than that: the secret may have been renewed.
func (s Value) Reveal() string {
	if s.c == nil {
		return ""
	}
	return *s.c.text.Load()
}

// IsSet reports whether there is a secret.
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
