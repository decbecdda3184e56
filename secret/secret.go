// Package secret holds values that must not be shown, and knows where they may
// come from: the environment, or a file the environment names (security 9.3).
package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"
)

const mask = "[secret]"

// A Value is a secret. Every way of printing or encoding it gives the mask;
// only Reveal gives the secret.
//
// The secret hangs on a pointer because fmt prints the fields of a Value
// without asking its methods where it may not call them: inside an unexported
// field of another struct, and for %p. There it finds an address.
type Value struct{ v *string }

// New wraps v. An empty v makes an unset secret.
func New(v string) Value {
	if v == "" {
		return Value{}
	}
	return Value{&v}
}

// Reveal returns the secret itself. Call it where the secret is used, and keep
// the result no longer than that.
func (s Value) Reveal() string {
	if s.v == nil {
		return ""
	}
	return *s.v
}

// IsSet reports whether there is a secret.
func (s Value) IsSet() bool { return s.v != nil }

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

// maxFileBytes bounds a secret's file: a larger one is surely the wrong file.
const maxFileBytes = 64 << 10

// Lookup reads the secret called name from the environment variable of that
// name, or from the file that name_FILE names, without the line ends it ends in.
// Neither set is an unset secret and no error; both set is an error, as is a
// file that cannot be read, is empty, or is readable by others.
func Lookup(name string, getenv func(string) string) (Value, error) {
	value, path := getenv(name), getenv(name+"_FILE")
	switch {
	case value != "" && path != "":
		return Value{}, fmt.Errorf("%s and %s_FILE are both set: unset one", name, name)
	case path == "":
		return New(value), nil
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Value{}, fmt.Errorf("%s_FILE names %s, which does not exist", name, path)
	}
	if err != nil {
		return Value{}, fmt.Errorf("read %s_FILE: %w", name, err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return Value{}, fmt.Errorf("%s_FILE names %s, which everyone can read: chmod o-rwx it", name, path)
	}
	if info.Size() > maxFileBytes {
		return Value{}, fmt.Errorf("%s_FILE names %s of %d bytes: want at most %d", name, path, info.Size(), maxFileBytes)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return Value{}, fmt.Errorf("read %s_FILE: %w", name, err)
	}
	s := New(strings.TrimRight(string(data), "\r\n"))
	if !s.IsSet() {
		return Value{}, fmt.Errorf("%s_FILE names %s, which is empty", name, path)
	}
	return s, nil
}
