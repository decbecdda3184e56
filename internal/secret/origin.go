package secret

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
)

// maxFileBytes bounds a secret's file: a larger one is surely the wrong file.
const maxFileBytes = 64 << 10

// An origin is the file that a secret came from.
type origin struct {
	variable string // that names the file
	path     string
	seen     os.FileInfo // as the file was when it was last read; nil: gone
}

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
	o := &origin{variable: name + "_FILE", path: path}
	s, err := o.read()
	if err == nil && o.seen.Mode().IsRegular() { // a pipe says it once only
		s.c.origin = o
	}
	return s, err
}

// File returns the file that the secret came from, and when it was written; an
// empty path if the secret came from elsewhere.
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

// read reads the file, and keeps how it was for touched.
func (o *origin) read() (Value, error) {
	info, err := os.Stat(o.path)
	o.seen = info
	if errors.Is(err, fs.ErrNotExist) {
		o.seen = nil
		return Value{}, fmt.Errorf("%s names %s, which does not exist: make the file, or correct the variable", o.variable, o.path)
	}
	if err != nil {
		o.seen = nil
		return Value{}, fmt.Errorf("read %s: %w: correct the variable, or the rights of the path", o.variable, err)
	}
	if info.Mode().Perm()&0o007 != 0 {
		return Value{}, fmt.Errorf("%s names %s, which everyone can read: chmod o-rwx it", o.variable, o.path)
	}
	if info.Size() > maxFileBytes {
		return Value{}, fmt.Errorf("%s names %s of %d bytes: want at most %d", o.variable, o.path, info.Size(), maxFileBytes)
	}
	data, err := os.ReadFile(o.path)
	if err != nil {
		return Value{}, fmt.Errorf("read %s: %w: make it a file that this user can read", o.variable, err)
	}
	s := New(strings.TrimRight(string(data), "\r\n"))
	if !s.IsSet() {
		return Value{}, fmt.Errorf("%s names %s, which is empty: write the secret into it", o.variable, o.path)
	}
	return s, nil
}

// touched reports whether the file is another, or was written, since it was read.
func (o *origin) touched() bool {
	info, err := os.Stat(o.path)
	if err != nil || o.seen == nil {
		return (err == nil) != (o.seen != nil)
	}
	return !os.SameFile(info, o.seen) || !info.ModTime().Equal(o.seen.ModTime()) ||
		info.Size() != o.seen.Size() || info.Mode() != o.seen.Mode()
}
