package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"time"
)

// maxFileBytes is the size limit of a secret's file. A larger file is the wrong one.
const maxFileBytes = 64 << 10

// An origin is the file that a secret came from.
type origin struct {
	variable string // names the file
	path     string
	problem  string // error of the last read; empty if it succeeded
}

// Lookup returns the secret in the environment variable name, or in the file that
// name_FILE names, without trailing line ends. If neither is set, the secret is
// unset. It is an error if both are set, or if the file cannot be read, is empty, or
// is accessible to others.
func Lookup(name string, getenv func(string) string) (Value, error) {
	value, path := getenv(name), getenv(name+"_FILE")
	switch {
	case value != "" && path != "":
		return Value{}, fmt.Errorf("%s and %s_FILE are both set: unset one", name, name)
	case path == "":
		return New(value), nil
	}
	o := &origin{variable: name + "_FILE", path: path}
	s, err := o.read()
	if info, statErr := os.Stat(path); err == nil && statErr == nil && info.Mode().IsRegular() { // a pipe cannot be read again
		s.c.origin = o
	}
	return s, err
}

// ReadFile returns the secret in a file, with the checks of [Lookup]. name is the setting
// that names the file.
func ReadFile(name, path string) (Value, error) {
	return (&origin{variable: name, path: path}).read()
}

// File returns the file that the secret came from, and when it was modified. The path
// is empty if the secret did not come from a file.
func (s Value) File() (path string, written time.Time) {
	if s.c == nil || s.c.origin == nil {
		return "", time.Time{}
	}
	o := s.c.origin
	if info, err := os.Stat(o.path); err == nil {
		written = info.ModTime()
	}
	return o.path, written
}

func (o *origin) read() (Value, error) {
	info, err := os.Stat(o.path)
	if errors.Is(err, fs.ErrNotExist) {
		return Value{}, fmt.Errorf("%s names %s, which does not exist: create the file, or correct the variable", o.variable, o.path)
	}
	if err != nil {
		return Value{}, fmt.Errorf("read %s: %w: correct the variable, or the permissions of the path", o.variable, err)
	}
	if Exposed(info, 0o007) {
		return Value{}, fmt.Errorf("%s names %s, which everyone can access: run chmod o-rwx %[2]q", o.variable, o.path)
	}
	if info.Size() > maxFileBytes {
		return Value{}, fmt.Errorf("%s names %s of %d bytes: want at most %d", o.variable, o.path, info.Size(), maxFileBytes)
	}
	data, err := os.ReadFile(o.path)
	if err != nil {
		return Value{}, fmt.Errorf("read %s: %w: give this user read permission", o.variable, err)
	}
	s := New(strings.TrimRight(string(data), "\r\n"))
	if !s.IsSet() {
		return Value{}, fmt.Errorf("%s names %s, which is empty: write the secret to it", o.variable, o.path)
	}
	return s, nil
}

// Exposed reports whether the permission bits of a file or directory give any of the
// access in mask. On Windows they do not show who has access: the access list decides,
// and Exposed returns false.
func Exposed(info fs.FileInfo, mask fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&mask != 0
}
