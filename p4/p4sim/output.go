package main

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// A style is one of the forms in which the client prints what the server says.
type style int

const (
	plain   style = iota
	script        // -s: every line tagged with what it is
	debug         // -e: as script, with what identifies each message
	jsonl         // -Mj
	marshal       // -G
)

// A field is one value of a record; records keep the server's order.
type field struct{ key, value string }

// A printer writes the records of a command in the style that was asked for.
// Errors go to stderr in plain style and to stdout in all others.
type printer struct {
	stdout *bufio.Writer
	stderr io.Writer
	style  style
	// tagged is set if reports come as records, not as text.
	tagged bool
	// quiet drops info messages and records.
	quiet bool
	// format, if set, prints each record through this text (-F).
	format string
	// before is asked before each record; false ends the output there.
	before func() bool
	// failed is set by the first message of severity failed.
	failed  bool
	stopped bool
}

// write keeps the first error for the flush at the end.
func (p *printer) write(text string) { _, _ = p.stdout.WriteString(text) }

// proceed reports whether one more record may be printed.
func (p *printer) proceed() bool {
	if !p.stopped && p.before != nil && !p.before() {
		p.stopped = true
	}
	return !p.stopped
}

// say prints a message the way its severity demands.
func (p *printer) say(m *message, args ...string) {
	if !p.proceed() {
		return
	}
	u := m.with(args...)
	if m.severity > info {
		p.complain(u)
		return
	}
	if p.quiet {
		return
	}
	p.info(m.generic, u.text())
	if p.style == debug {
		p.write(u.debug())
	}
}

// info prints a line of a report at an indent level.
func (p *printer) info(level int, text string) {
	switch p.style {
	case script, debug:
		p.prefixed(infoTag(level), text)
	case jsonl:
		p.json([]field{{"data", text}}, map[string]int{"level": level})
	case marshal:
		p.marshal([]field{{"code", "info"}, {"data", text}}, []number{{"level", level}})
	default:
		p.write(strings.Repeat("... ", level) + text + "\n")
	}
}

func infoTag(level int) string {
	if level == 0 {
		return "info: "
	}
	return "info" + strconv.Itoa(level) + ": "
}

// prefixed prints each line of the text after a tag.
func (p *printer) prefixed(tag, text string) {
	for text != "" {
		line, rest, _ := strings.Cut(text, "\n")
		p.write(tag + line + "\n")
		text = rest
	}
}

// fail prints messages as one error: what is wrong, after how it should be.
func (p *printer) fail(us ...utterance) {
	if p.proceed() {
		p.complain(us...)
	}
}

// complain prints without asking; it is how a stopped command still ends.
func (p *printer) complain(us ...utterance) {
	var texts []string
	severity := 0
	for _, u := range us {
		texts = append(texts, u.text())
		severity = max(severity, u.severity)
	}
	p.failed = p.failed || severity >= failed
	p.errorRecord(severity, us[0].generic, strings.Join(texts, "\n")+"\n")
	if p.style == debug {
		for _, u := range us {
			p.write(u.debug())
		}
	}
}

func (p *printer) errorRecord(severity, generic int, text string) {
	switch p.style {
	case script, debug:
		tag := "error: "
		if severity == warn {
			tag = "warning: "
		}
		p.prefixed(tag, text)
	case jsonl:
		p.json([]field{{"data", text}}, map[string]int{"severity": severity, "generic": generic})
	case marshal:
		p.marshal([]field{{"code", "error"}, {"data", text}}, []number{{"severity", severity}, {"generic", generic}})
	default:
		fmt.Fprint(p.stderr, text)
	}
}

// clientError prints what went wrong before a server could say anything. It is
// plain text on stderr in every style.
func (p *printer) clientError(us ...utterance) {
	p.failed = true
	fmt.Fprint(p.stderr, "Perforce client error:\n")
	for _, u := range us {
		fmt.Fprintf(p.stderr, "\t%s\n", strings.ReplaceAll(u.text(), "\n", "\n\t"))
	}
}

// record prints one record of a report.
func (p *printer) record(fields []field) {
	if !p.proceed() || p.quiet {
		return
	}
	if p.format != "" {
		p.write(expandFormat(p.format, fields) + "\n")
		return
	}
	switch p.style {
	case script, debug:
		for _, f := range fields {
			p.prefixed(infoTag(fieldLevel(f)), f.key+" "+f.value)
		}
	case jsonl:
		p.json(fields, nil)
	case marshal:
		p.marshal(append([]field{{"code", "stat"}}, fields...), nil)
	default:
		for _, f := range fields {
			p.write(strings.Repeat("... ", fieldLevel(f)) + f.key + " " + f.value + "\n")
		}
		p.write("\n")
	}
}

// fieldLevel indents what others have open one deeper.
func fieldLevel(f field) int {
	if strings.HasPrefix(f.key, "other") {
		return 2
	}
	return 1
}

// expandFormat replaces %key% by the record's value.
func expandFormat(format string, fields []field) string {
	var b strings.Builder
	for rest := format; ; {
		head, tail, ok := strings.Cut(rest, "%")
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		key, after, _ := strings.Cut(tail, "%")
		for _, f := range fields {
			if f.key == key {
				b.WriteString(f.value)
			}
		}
		rest = after
	}
}

// text prints a piece of a file's content or of a diff. Plain style passes it
// on byte for byte.
func (p *printer) text(data string, binary bool) {
	if !p.proceed() {
		return
	}
	switch p.style {
	case script, debug:
		p.prefixed("text: ", data)
	case jsonl:
		p.json([]field{{"data", data}}, nil)
	case marshal:
		code := "text"
		if binary {
			code = "binary"
		}
		p.marshal([]field{{"code", code}, {"data", data}}, nil)
	default:
		p.write(data)
	}
}

// exit is the command's exit code, after the last line that -s adds.
func (p *printer) exit() int {
	code := 0
	if p.failed {
		code = 1
	}
	if p.style == script || p.style == debug {
		fmt.Fprintf(p.stdout, "exit: %d\n", code)
	}
	return code
}

// chunkSize is how much of a file's content comes in one record.
const chunkSize = 4096

// content prints a file's content. Where it comes in records, an empty one
// ends it.
func (p *printer) content(data []byte, binary bool) {
	if p.style != jsonl && p.style != marshal {
		p.text(string(data), binary)
		return
	}
	for chunk := range slices.Chunk(data, chunkSize) {
		p.text(string(chunk), binary)
	}
	p.text("", binary)
}
