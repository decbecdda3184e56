package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/p4/internal/command"
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
		var values []any
		for _, f := range fields {
			values = append(values, f.key, f.value)
		}
		p.marshal("stat", values...)
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
		p.marshal("error", "data", text, "severity", m.severity, "generic", m.generic)
		return
	}
	fmt.Fprint(p.stderr, text)
}

// clientError prints an error of the client itself: text on stderr, even with -G.
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
		p.marshal(code, "data", string(chunk))
	}
	p.marshal(code, "data", "")
}

// marshal prints a record of the given names and values.
func (p *printer) marshal(code string, fields ...any) {
	p.write(string(command.AppendRecord(nil, code, fields...)))
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

// write leaves errors to the flush at the end.
func (p *printer) write(text string) {
	if !p.dropped {
		_, _ = p.stdout.WriteString(text)
	}
}
