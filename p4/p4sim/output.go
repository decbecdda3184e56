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
}

// write leaves errors to the flush at the end.
func (p *printer) write(text string) { _, _ = p.stdout.WriteString(text) }

// From severity failed on, the exit status is 1.
const (
	warning = 2
	failed  = 3
)

// Generic codes.
const (
	genericUsage   = 1
	genericUnknown = 2
	genericIllegal = 4
	genericEmpty   = 17
	genericFault   = 33
	genericComm    = 38
)

// A message is what the server or the client reports. Texts, severities and
// generic codes are as in the 2023.2 client. Text is a format.
type message struct {
	severity, generic int
	text              string
}

var (
	wrongUsage   = message{failed, genericUsage, "Usage: p4sim has no such command or option."}
	badRevision  = message{failed, genericIllegal, "Invalid changelist/client/label/date '%s'."}
	noSuchChange = message{failed, genericUnknown, "Change %s unknown."}
	noSuchFiles  = message{warning, genericEmpty, "%s - no such file(s)."}
	accessDenied = message{warning, genericEmpty, "%s - protected namespace - access denied."}
	// checkoutFailed has the lines of three messages: of the connection, the archive and the system.
	checkoutFailed = message{failed, genericFault, "Operation 'user-print' failed.\nLibrarian checkout %[1]s failed.\nopen for read: %[1]s,v: No such file or directory"}
	noSuchUsers    = message{warning, genericEmpty, "%s - no such user(s)."}
	keyNotTrusted  = message{failed, genericComm, "The authenticity of '%s' can't be established,\n" +
		"this may be your first attempt to connect to this P4PORT.\nThe fingerprint for the key sent to your client is\n" +
		"%s\nTo allow connection use the 'p4 trust' command."}
)

// format returns the text with args. The text of a fault is used as it is.
func (m message) format(args ...any) string {
	if len(args) == 0 {
		return m.text
	}
	return fmt.Sprintf(m.text, args...)
}
