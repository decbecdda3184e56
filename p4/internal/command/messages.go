package command

import (
	_ "embed" // messages.txt
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// messageTable is the table of p4's messages; it describes its own format. p4 runs
// with LC_ALL=C and without P4LANGUAGE, so that the text is English.
//
//go:embed messages.txt
var messageTable string

// A Message is what messages of p4 mean: one line of the table.
type Message struct {
	Class   failure.Class
	Skip    review.SkipReason // of the one file that the message is about; or empty
	Text    string            // what failed and what to do
	generic string            // the only generic code that matches; - for any
	pattern string
	matches *regexp.Regexp
}

var messages = sync.OnceValue(func() []Message {
	var all []Message
	for line := range strings.Lines(messageTable) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), " |")
		if line[0] == '#' || len(columns) != 5 {
			continue
		}
		m := Message{
			Class: failure.Class(columns[0]), Skip: review.SkipReason(strings.TrimPrefix(columns[1][1:], "-")), Text: columns[4][1:],
			generic: columns[2][1:], pattern: strings.TrimPrefix(columns[3], " "), // a blank at its end counts
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(m.pattern), `\*`, `.*`)
		if rest, ok := strings.CutPrefix(pattern, `.*`); ok && !strings.HasPrefix(rest, " - ") {
			pattern = `(?:[^/\s].*)?` + rest
		}
		m.matches = regexp.MustCompile(`(?m)^\s*` + pattern)
		all = append(all, m)
	}
	return all
})

// longestMessage bounds the bytes of a message that the rules read: text that a trigger
// adds can be of any length, and there are many rules.
const longestMessage = 16 << 10

// plainWord matches a word of a message that is not a name, path, address or number.
var plainWord = regexp.MustCompile(`^\(?[A-Za-z]?[a-z'-]{1,15}[.,;:!?)]*$|^(I|TLS|SSL|TCP|P4[A-Z]+)[.,;:!?)]*$`)

// scrub returns the plain words of a text that is not known: names, paths, addresses and
// numbers become dots.
func scrub(text string) string {
	words := strings.Fields(text[:min(len(text), 400)])
	for i, word := range words {
		if !plainWord.MatchString(word) {
			words[i] = "..."
		}
	}
	return strings.Join(words, " ")
}

// classify finds the line of the table for a text and its generic code; ok is false if
// there is none. Text without a record has no code and is empty for most commands.
func classify(text, generic string) (m Message, ok bool) {
	text = text[:min(len(text), longestMessage)]
	for _, m := range messages() {
		if (m.generic == "-" || m.generic == generic) && m.matches.MatchString(text) {
			return m, true
		}
	}
	return Message{Class: failure.Unknown, Text: "the server sent an unknown message: run the command by hand to see it"}, false
}

// Message returns what the message of an error record means.
func (r Record) Message() Message {
	m, _ := classify(r.Fields["data"], strconv.Itoa(r.Number("generic")))
	return m
}

// An untrustedKey is the error of a server whose key p4 does not trust. key is the
// fingerprint that the server presents.
type untrustedKey struct{ address, key, text string }

func (e untrustedKey) Error() string { return e.text }

// untrusted matches the messages about a key that is unknown or has changed.
var untrusted = regexp.MustCompile(`(?s)(?:authenticity of|P4PORT) '([^'\s]+)'.*?\b((?:[0-9A-F]{2}:){19}[0-9A-F]{2})\b`)

// err returns the error of a text that m describes. It does not hold the text, which can
// have names, paths and the output of a trigger.
func (m Message) err(text string) *failure.Error {
	if found := untrusted.FindStringSubmatch(text); found != nil && m.Class == failure.ConfigInvalid {
		return failure.New(m.Class, untrustedKey{found[1], found[2], m.Text})
	}
	switch m.Class {
	case failure.Unknown, failure.NotFound, failure.InvariantViolated:
		if m.pattern == "" {
			return failure.New(m.Class, unknownMessage(m.Text))
		}
	}
	return failure.Errorf(m.Class, "%s", m.Text)
}

// An unknownMessage is the error of a message of which only the generic code is known. Behind
// a broker it may be the broker's.
type unknownMessage string

func (e unknownMessage) Error() string { return string(e) }

// Err returns the error of a record, nil if its severity is below 3.
func (r Record) Err() error {
	if r.Severity() < 3 {
		return nil
	}
	e := r.Message().err(r.Fields["data"])
	e.Upstream = fmt.Sprintf("severity %d generic %d", r.Severity(), r.Number("generic"))
	return e
}
