package command

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"maps"
	"slices"
	"testing"
)

func decodeAll(data []byte) (all []Record, err error) {
	err = Decode(bytes.NewReader(data), func(rec Record) error { all = append(all, rec); return nil })
	return all, err
}

func TestDecoderKeepsEveryByte(t *testing.T) {
	t.Parallel()
	const raw = "a\x00b\xff\xfe{0si\n"
	records, err := decodeAll(slices.Concat(AppendRecord(nil, "stat", "desc", raw, "empty", ""), AppendRecord(nil, "text", "data", raw), message(3, 38, "x")))
	if err != nil || len(records) != 3 {
		t.Fatalf("records = %+v, %v", records, err)
	}
	if want := map[string]string{"code": "stat", "desc": raw, "empty": ""}; !maps.Equal(records[0].Fields, want) {
		t.Errorf("fields = %q, want %q", records[0].Fields, want)
	}
	if !records[1].IsContent() || records[1].Fields["data"] != raw {
		t.Errorf("chunk = %+v", records[1])
	}
	if records[2].Severity() != 3 || records[2].Number("generic") != 38 || records[2].IsContent() {
		t.Errorf("message = %+v", records[2])
	}
}

func TestSeverityMayBeAString(t *testing.T) {
	t.Parallel()
	records, err := decodeAll(AppendRecord(nil, "error", "data", "x", "severity", "4"))
	if err != nil || records[0].Severity() != 4 {
		t.Errorf("records = %+v, %v; want severity 4", records, err)
	}
}

func TestDecoderRefuses(t *testing.T) {
	t.Parallel()
	long := binary.LittleEndian.AppendUint32([]byte("{s"), maxString+1)
	stat := AppendRecord(nil, "stat", "a", "b")
	cases := map[string]struct {
		data []byte
		want error
	}{
		"plain text":                   {[]byte("Change 12 by ann\n"), errNotMarshalled},
		"an absurd length":             {append(long, make([]byte, 64)...), errNotMarshalled},
		"a length without its bytes":   {binary.LittleEndian.AppendUint32([]byte("{s"), maxString), io.ErrUnexpectedEOF},
		"a kind p4 does not use":       {[]byte("{l\x00\x00\x00\x00"), errNotMarshalled},
		"a key without a value":        {[]byte("{s\x01\x00\x00\x00k0"), errNotMarshalled},
		"the end in a length":          {[]byte("{s\x01\x00"), io.ErrUnexpectedEOF},
		"the end between two pairs":    {stat[:len(stat)-1], io.ErrUnexpectedEOF},
		"a record of too many fields":  {slices.Concat([]byte("{"), bytes.Repeat([]byte("s\x00\x00\x00\x00s\x00\x00\x00\x00"), maxPairs), []byte("0")), errTooManyFields},
		"text after a complete record": {append(slices.Clone(stat), "oops"...), errNotMarshalled},
	}
	for name, c := range cases {
		if _, err := decodeAll(c.data); !errors.Is(err, c.want) {
			t.Errorf("%s: error = %v, want %v", name, err, c.want)
		}
	}
}

func FuzzDecoder(f *testing.F) {
	f.Add(slices.Concat(AppendRecord(nil, "stat", "change", "12"), AppendRecord(nil, "text", "data", "x\n"), AppendRecord(nil, "text", "data", ""), message(3, 2, "no\n")))
	f.Add([]byte("{s\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := decodeAll(data)
		size := 0
		for _, rec := range records {
			for name, value := range rec.Fields {
				size += len(name) + len(value)
			}
		}
		// A number is read from 4 bytes and has up to 11 digits.
		if size > 3*len(data) {
			t.Errorf("%d bytes became %d", len(data), size)
		}
		if err == nil && len(data) > 0 && len(records) == 0 {
			t.Error("no record and no error")
		}
	})
}

// message encodes an error record.
func message(severity, generic int, text string) []byte {
	return AppendRecord(nil, "error", "data", text, "severity", severity, "generic", generic)
}
