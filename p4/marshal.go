package p4

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A record is one marshalled dictionary of p4 -G, the only output mode that keeps
// the server's bytes.
type record struct {
	// code is stat, info, error, or a kind of file content such as text or binary.
	code   string
	fields map[string]string
}

// severity is 0 for records other than messages, 2 for a warning, 3 or more for a
// failure. Other records may have a field of that name: a jobspec can define one.
func (r record) severity() int {
	if r.code != "error" {
		return 0
	}
	return r.number("severity")
}

// number returns 0 for a field that is missing or not a number.
func (r record) number(field string) int {
	n, err := strconv.Atoi(r.fields[field])
	if err != nil {
		return 0
	}
	return n
}

// isContent reports whether the record is a chunk of a printed file.
func (r record) isContent() bool {
	switch r.code {
	case "stat", "info", "error":
		return false
	}
	return true
}

// Limits of a string and a record: p4 sends content in chunks far smaller than
// maxString, and maxPairs is a changelist of some 100,000 files.
const (
	maxString = 16 << 20
	maxPairs  = 1 << 20
)

var (
	errNotMarshalled = errors.New("output is not the output of p4 -G")
	errTooManyFields = errors.New("output has a record of more than 1,048,576 fields")
)

// A decoder reads records: an open brace, pairs of a string and a string or
// number, and a zero digit.
type decoder struct{ r *bufio.Reader }

// next returns the next record, io.EOF at the end of the output and
// io.ErrUnexpectedEOF inside a record.
func (d decoder) next() (record, error) {
	open, err := d.r.ReadByte()
	if err != nil {
		return record{}, err
	}
	if open != '{' {
		return record{}, fmt.Errorf("%w: it begins with byte %#x", errNotMarshalled, open)
	}
	rec := record{fields: make(map[string]string)}
	for range maxPairs {
		key, err := d.value()
		if errors.Is(err, errEndOfRecord) {
			rec.code = rec.fields["code"]
			return rec, nil
		}
		if err != nil {
			return record{}, endInside(err)
		}
		if rec.fields[key], err = d.value(); err != nil {
			return record{}, endInside(err)
		}
	}
	return record{}, errTooManyFields
}

// errEndOfRecord is returned by value for the end of a record. In the place of a
// value it is an error of the output.
var errEndOfRecord = fmt.Errorf("%w: a key without a value", errNotMarshalled)

// value reads a string, or a number as its decimal digits.
func (d decoder) value() (string, error) {
	kind, err := d.r.ReadByte()
	if err != nil {
		return "", err
	}
	if kind == '0' {
		return "", errEndOfRecord
	}
	var word [4]byte
	if _, err := io.ReadFull(d.r, word[:]); err != nil {
		return "", err
	}
	n := binary.LittleEndian.Uint32(word[:])
	switch {
	case kind == 'i':
		return strconv.Itoa(int(int32(n))), nil //nolint:gosec // the wire format is a signed number in these four bytes
	case kind != 's':
		return "", fmt.Errorf("%w: a value of kind %#x", errNotMarshalled, kind)
	case n > maxString:
		return "", fmt.Errorf("%w: a string of %d bytes", errNotMarshalled, n)
	}
	var b bytes.Buffer // grows with the bytes that arrive: a false length costs no memory
	if _, err := io.CopyN(&b, d.r, int64(n)); err != nil {
		return "", err
	}
	return b.String(), nil
}

func endInside(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
