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

// A record is one marshalled dictionary of p4 -G, the only lossless output
// mode: values are the server's bytes.
type record struct {
	// code is stat, info, error, or a kind of file content such as text or binary.
	code   string
	fields map[string]string
}

// severity is 0 for what is not a message, 2 for a warning, 3 and more for a failure.
func (r record) severity() int { return r.number("severity") }

func (r record) number(field string) int {
	n, err := strconv.Atoi(r.fields[field])
	if err != nil {
		return 0
	}
	return n
}

// isContent tells the chunks of a printed file from everything else.
func (r record) isContent() bool {
	switch r.code {
	case "stat", "info", "error":
		return false
	}
	return true
}

// Bounds of what is believed of a length or a count: p4 sends content in
// chunks far smaller than maxString, and maxPairs is a changelist of some
// 100,000 files.
const (
	maxString = 16 << 20
	maxPairs  = 1 << 20
)

var (
	errNotMarshalled = errors.New("output is not what p4 -G prints")
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
		if errors.Is(err, errEnd) {
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

// errEnd is what value says of the end of a record.
var errEnd = fmt.Errorf("%w: a key without a value", errNotMarshalled)

// value reads a string, or a number as its decimal digits.
func (d decoder) value() (string, error) {
	kind, err := d.r.ReadByte()
	if err != nil {
		return "", err
	}
	if kind == '0' {
		return "", errEnd
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
	return d.text(int64(n))
}

// text reads n bytes. It grows with what arrives, so that a false length costs
// no memory.
func (d decoder) text(n int64) (string, error) {
	var b bytes.Buffer
	if _, err := io.CopyN(&b, d.r, n); err != nil {
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
