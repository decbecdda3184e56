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

// Decode calls each for every record of the output r, up to the first error of each. A
// record is an open brace, pairs of a string and a string or number, and a zero digit. Decode
// returns io.ErrUnexpectedEOF if the output ends inside a record.
func Decode(r io.Reader, each func(Record) error) error {
	d := decoder{bufio.NewReaderSize(r, 64<<10)}
	for {
		open, err := d.r.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case open != '{':
			return fmt.Errorf("%w: it begins with byte %#x", errNotMarshalled, open)
		}
		rec := Record{Fields: make(map[string]string)}
		for pairs := 0; ; pairs++ {
			key, err := d.value()
			if errors.Is(err, errEndOfRecord) {
				break
			}
			if err == nil {
				rec.Fields[key], err = d.value()
			}
			switch {
			case errors.Is(err, io.EOF):
				return io.ErrUnexpectedEOF
			case err != nil:
				return err
			case pairs == maxPairs-1:
				return errTooManyFields
			}
		}
		rec.Code = rec.Fields["code"]
		if err := each(rec); err != nil {
			return err
		}
	}
}

type decoder struct{ r *bufio.Reader }

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
