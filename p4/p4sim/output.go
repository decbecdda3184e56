package main

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
)

// A field is one value of a record; records keep the server's order.
type field struct{ key, value string }

// A printer writes what a command reports.
type printer struct {
	stdout *bufio.Writer
	stderr io.Writer
	// marshalled is set by -G; without it records are tagged text, and messages
	// go to stderr.
	marshalled bool
	quiet      bool // content without its records
	status     int  // of the process
	left       int  // records before the connection is dropped; not positive for no drop
	dropped    bool
}

// record prints one record of a report.
func (p *printer) record(fields []field) {
	if p.marshalled {
		p.marshal("stat", fields, nil)
		return
	}
	if p.quiet {
		return
	}
	for _, f := range fields {
		p.write("... " + f.key + " " + f.value + "\n")
	}
	p.write("\n")
}

// message prints a message.
func (p *printer) message(m message, args ...any) {
	text := m.format(args...) + "\n"
	if m.severity >= failed {
		p.status = 1
	}
	if p.marshalled {
		p.marshal("error", []field{{"data", text}}, []number{{"severity", m.severity}, {"generic", m.generic}})
		return
	}
	fmt.Fprint(p.stderr, text)
}

// clientError prints an error of the client itself: text on stderr, also with -G.
func (p *printer) clientError(lines ...string) {
	p.status = 1
	fmt.Fprintf(p.stderr, "Perforce client error:\n\t%s\n", strings.Join(lines, "\n\t"))
}

// chunkSize is how much of a file's content comes in one record.
const chunkSize = 4096

// content prints a file's content; an empty record ends it.
func (p *printer) content(data []byte, isBinary bool) {
	if !p.marshalled {
		p.write(string(data))
		return
	}
	code := "text"
	if isBinary {
		code = "binary"
	}
	for chunk := range slices.Chunk(data, chunkSize) {
		p.marshal(code, []field{{"data", string(chunk)}}, nil)
	}
	p.marshal(code, []field{{"data", ""}}, nil)
}

// A number is an integer value of a marshalled record.
type number struct {
	key   string
	value int
}

// marshal writes a record as a Python 2 marshalled dictionary: an open brace,
// strings with their length, integers, a zero digit.
func (p *printer) marshal(code string, fields []field, numbers []number) {
	b := []byte{'{'}
	for _, f := range append([]field{{"code", code}}, fields...) {
		b = appendString(appendString(b, f.key), f.value)
	}
	for _, n := range numbers {
		b = append(appendString(b, n.key), 'i')
		b = binary.LittleEndian.AppendUint32(b, uint32(n.value)) //nolint:gosec // a severity or generic code
	}
	p.write(string(append(b, '0')))
	if p.left--; p.left == 0 {
		p.drop()
	}
}

// drop reports that the server closed the connection. Nothing is printed after it.
func (p *printer) drop() {
	p.message(partnerExited)
	p.clientError(partnerExited.text)
	p.dropped = true
}

func appendString(b []byte, s string) []byte {
	b = binary.LittleEndian.AppendUint32(append(b, 's'), uint32(len(s))) //nolint:gosec // no value is 4 GB long
	return append(b, s...)
}

// write leaves errors to the flush at the end.
func (p *printer) write(text string) {
	if !p.dropped {
		_, _ = p.stdout.WriteString(text)
	}
}
