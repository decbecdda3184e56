package main

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A number is an integer value of a marshalled record.
type number struct {
	key   string
	value int
}

// marshal writes a record as a Python 2 marshalled dictionary: type byte,
// little-endian length, bytes. It is the only style that loses nothing.
func (p *printer) marshal(fields []field, numbers []number) {
	b := []byte{'{'}
	for _, f := range fields {
		b = appendMarshalled(appendMarshalled(b, f.key), f.value)
	}
	for _, n := range numbers {
		b = append(appendMarshalled(b, n.key), 'i')
		b = binary.LittleEndian.AppendUint32(b, uint32(n.value)) //nolint:gosec // a level, severity or generic code
	}
	p.write(string(append(b, '0')))
}

func appendMarshalled(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, 's'), uint32(len(s))) //nolint:gosec // nothing here is 4 GB long
	return append(b, s...)
}

// json writes a record as one line of JSON with sorted keys. Values end at the
// first NUL, and what is not UTF-8 becomes U+FFFD.
func (p *printer) json(fields []field, numbers map[string]int) {
	values := make(map[string]string, len(fields)+len(numbers))
	for _, f := range fields {
		value, _, _ := strings.Cut(f.value, "\x00")
		values[f.key] = quoteJSON(value)
	}
	for key, n := range numbers {
		values[key] = strconv.Itoa(n)
	}
	p.write("{")
	for i, key := range slices.Sorted(maps.Keys(values)) {
		if i > 0 {
			p.write(",")
		}
		p.write(quoteJSON(key) + ":" + values[key])
	}
	p.write("}\n")
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`,
}

func quoteJSON(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := 0; i < len(s); {
		r, size := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && size == 1 {
			size = brokenPrefix(s[i:])
		}
		switch escape, ok := jsonEscapes[r]; {
		case ok:
			b.WriteString(escape)
		case r < ' ':
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
		i += size
	}
	b.WriteByte('"')
	return b.String()
}

// brokenPrefix is how many bytes one U+FFFD stands for: the longest start of
// what could have been a character.
func brokenPrefix(s string) int {
	n := 1
	for n < len(s) && n < utf8.UTFMax && !utf8.FullRuneInString(s[:n]) {
		n++
	}
	if n > 1 && utf8.FullRuneInString(s[:n]) {
		n--
	}
	return n
}
