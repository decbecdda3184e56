package main

import (
	"fmt"
	"strings"
)

// Severities and generic codes of messages. From severity failed on, the
// command counts as failed; an info message's generic code is its indent level.
const (
	info   = 1
	warn   = 2
	failed = 3
	fatal  = 4

	evUsage   = 1
	evUnknown = 2
	evContext = 3
	evIllegal = 4
	evNotYet  = 5
	evProtect = 6
	evEmpty   = 17
	evFault   = 33
	evClient  = 34
	evAdmin   = 35
	evConfig  = 36
	evComm    = 38
	evTooBig  = 39
)

// subsystems maps the prefix of a message's name to its subsystem number.
var subsystems = map[string]int{
	"MsgOs": 0, "MsgSupp": 1, "MsgLbr": 2, "MsgRpc": 3, "MsgDb": 4, "MsgDm": 6, "MsgServer": 7, "MsgClient": 8,
}

// A message is one line of the catalogue: what the server or the client may
// say. Its format holds %name% for arguments, %'text'% for literal text, and
// [a|b] for "a, or b if an argument of a is empty".
type message struct {
	name     string
	code     int
	severity int
	generic  int
	format   string
}

// catalogue holds every message by its name, for faults that ask for one.
var catalogue = map[string]*message{}

func define(name string, code, severity, generic int, format string) *message {
	m := &message{name: name, code: code, severity: severity, generic: generic, format: format}
	catalogue[name] = m
	return m
}

func (m *message) subsystem() int {
	prefix, _, _ := strings.Cut(m.name, "::")
	return subsystems[prefix]
}

// code32 packs what identifies a message, as "p4 -e" prints it.
func (m *message) code32() int {
	return m.severity<<28 | len(m.argNames())<<24 | m.generic<<16 | m.uniq()
}

func (m *message) uniq() int { return m.subsystem()<<10 | m.code }

// argNames lists the arguments in the order in which the format names them.
func (m *message) argNames() []string {
	var names []string
	for rest := m.format; ; {
		_, tail, ok := strings.Cut(rest, "%")
		if !ok {
			return names
		}
		name, after, _ := strings.Cut(tail, "%")
		if name != "" && name[0] != '\'' {
			names = append(names, name)
		}
		rest = after
	}
}

// An utterance is a message with its arguments, in the order of argNames.
// Missing arguments are empty.
type utterance struct {
	*message
	args []string
	// local marks what the client says by itself: it has no dictionary.
	local bool
}

func (m *message) with(args ...string) utterance { return utterance{message: m, args: args} }

func (m *message) byClient(args ...string) utterance {
	return utterance{message: m, args: args, local: true}
}

func (u utterance) lookup(name string) string {
	for i, n := range u.argNames() {
		if n == name && i < len(u.args) {
			return u.args[i]
		}
	}
	return ""
}

// text formats the message, without a line end.
func (u utterance) text() string {
	var b strings.Builder
	rest := u.format
	for rest != "" {
		i := strings.IndexAny(rest, "[%")
		if i < 0 {
			break
		}
		b.WriteString(rest[:i])
		if rest[i] == '[' {
			choice, after, _ := strings.Cut(rest[i+1:], "]")
			b.WriteString(u.choose(choice))
			rest = after
			continue
		}
		value, _, after := u.variable(rest[i+1:])
		b.WriteString(value)
		rest = after
	}
	return b.String() + rest
}

// choose formats the first alternative if all its arguments are set.
func (u utterance) choose(choice string) string {
	first, second, _ := strings.Cut(choice, "|")
	var b strings.Builder
	for rest := first; ; {
		head, tail, ok := strings.Cut(rest, "%")
		b.WriteString(head)
		if !ok {
			return b.String()
		}
		value, set, after := u.variable(tail)
		if !set {
			return second
		}
		b.WriteString(value)
		rest = after
	}
}

// variable formats what follows a percent sign.
func (u utterance) variable(s string) (value string, set bool, after string) {
	if literal, ok := strings.CutPrefix(s, "'"); ok {
		value, after, _ = strings.Cut(literal, "'%")
		return value, true, after
	}
	name, after, _ := strings.Cut(s, "%")
	if name == "" {
		return "%", true, after
	}
	value = u.lookup(name)
	return value, value != "", after
}

// debug is what "p4 -e" adds to a message.
func (u utterance) debug() string {
	var b strings.Builder
	fmt.Fprintf(&b, "code0 %d (sub %d sys %d gen %d args %d sev %d uniq %d)\n",
		u.code32(), u.code, u.subsystem(), u.generic, len(u.argNames()), u.severity, u.uniq())
	if !u.local {
		fmt.Fprintf(&b, "... code0 %d\n... fmt0 %s\n", u.code32(), u.format)
		for i, name := range u.argNames() {
			if i < len(u.args) {
				fmt.Fprintf(&b, "... %s %s\n", name, u.args[i])
			}
		}
	}
	return b.String() + "\n"
}
