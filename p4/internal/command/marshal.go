package command

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// A Record is one marshalled dictionary of p4 -G, the only output mode that keeps
// the server's bytes.
type Record struct {
	// Code is stat, info, error, or a kind of file content such as text or binary.
	Code   string
	Fields map[string]string
}

// Severity is 0 for records other than messages, 2 for a warning, 3 or more for a
// failure. Other records may have a field of that name: a jobspec can define one.
func (r Record) Severity() int {
	if r.Code != "error" {
		return 0
	}
	return r.Number("severity")
}

// Number returns 0 for a field that is missing or not a number.
func (r Record) Number(field string) int {
	n, err := strconv.Atoi(r.Fields[field])
	if err != nil {
		return 0
	}
	return n
}

// IsContent reports whether the record is a chunk of a printed file.
func (r Record) IsContent() bool {
	switch r.Code {
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

// Decode calls each for every record of the output r, up to the first error of each. It
// returns io.ErrUnexpectedEOF if the output ends inside a record.
func Decode(r io.Reader, each func(Record) error) error {
	d := decoder{bufio.NewReaderSize(r, 64<<10)}
	for {
		rec, err := d.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = each(rec)
		}
		if err != nil {
			return err
		}
	}
}

// A decoder reads records: an open brace, pairs of a string and a string or
// number, and a zero digit.
type decoder struct{ r *bufio.Reader }

// next returns the next record, io.EOF at the end of the output and
// io.ErrUnexpectedEOF inside a record.
func (d decoder) next() (Record, error) {
	open, err := d.r.ReadByte()
	if err != nil {
		return Record{}, err
	}
	if open != '{' {
		return Record{}, fmt.Errorf("%w: it begins with byte %#x", errNotMarshalled, open)
	}
	rec := Record{Fields: make(map[string]string)}
	for range maxPairs {
		key, err := d.value()
		if errors.Is(err, errEndOfRecord) {
			rec.Code = rec.Fields["code"]
			return rec, nil
		}
		if err != nil {
			return Record{}, endInside(err)
		}
		if rec.Fields[key], err = d.value(); err != nil {
			return Record{}, endInside(err)
		}
	}
	return Record{}, errTooManyFields
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

// AppendRecord appends a record as p4 -G prints it, for stand-ins of p4. The fields are
// names, each with a string or an int.
func AppendRecord(b []byte, code string, fields ...any) []byte {
	b = append(b, '{')
	for _, v := range append([]any{"code", code}, fields...) {
		switch v := v.(type) {
		case int:
			b = binary.LittleEndian.AppendUint32(append(b, 'i'), uint32(v)) //nolint:gosec // a severity or a generic code
		case string:
			b = binary.LittleEndian.AppendUint32(append(b, 's'), uint32(len(v))) //nolint:gosec // no value is 4 GB long
			b = append(b, v...)
		}
	}
	return append(b, '0')
}
