package p4

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

// A messageRule classifies messages of p4: one line of the table.
type messageRule struct {
	class   failure.Class
	skip    review.SkipReason // of the one file that the message is about; or empty
	generic string            // the only generic code that matches; - for any
	pattern string
	matches *regexp.Regexp
	text    string // of the error: what failed and what to do
}

var messageRules = sync.OnceValue(func() []messageRule {
	var rules []messageRule
	for line := range strings.Lines(messageTable) {
		if columns := strings.Split(strings.TrimSuffix(line, "\n"), " |"); line[0] != '#' && len(columns) == 5 {
			rules = append(rules, newMessageRule(columns))
		}
	}
	return rules
})

// newMessageRule reads a line of the table. A blank at the end of a pattern counts.
func newMessageRule(columns []string) messageRule {
	r := messageRule{
		class: failure.Class(columns[0]), skip: review.SkipReason(strings.TrimPrefix(columns[1][1:], "-")), generic: columns[2][1:],
		pattern: strings.TrimPrefix(columns[3], " "), text: columns[4][1:],
	}
	pattern := strings.ReplaceAll(regexp.QuoteMeta(r.pattern), `\*`, `.*`)
	if rest, ok := strings.CutPrefix(pattern, `.*`); ok && !strings.HasPrefix(rest, " - ") {
		pattern = `(?:[^/\s].*)?` + rest
	}
	r.matches = regexp.MustCompile(`(?m)^\s*` + pattern)
	return r
}

// longestMessage bounds the bytes of a message that the rules read: text that a trigger
// adds can be of any length, and there are many rules.
const longestMessage = 16 << 10

// classify returns the rule for a message and its generic code; ok is false if there
// is none. Text without a record has no code and is empty for most commands.
func classify(message, generic string) (rule messageRule, ok bool) {
	message = message[:min(len(message), longestMessage)]
	for _, rule := range messageRules() {
		if (rule.generic == "-" || rule.generic == generic) && rule.matches.MatchString(message) {
			return rule, true
		}
	}
	return messageRule{class: failure.Unknown, text: "the server sent an unknown message: run the command by hand to see it"}, false
}

// err returns the error; severity and generic are p4's own codes, 0 if it gave none.
// The text of the message is not reported: it can hold names, paths and the output
// of a trigger.
func (m messageRule) err(severity, generic int) error {
	e := failure.Errorf(m.class, "%s", m.text)
	if severity > 0 {
		e.Upstream = fmt.Sprintf("severity %d generic %d", severity, generic)
	}
	return e
}

// rule returns the rule for a message.
func (r record) rule() messageRule {
	rule, _ := classify(r.fields["data"], strconv.Itoa(r.number("generic")))
	return rule
}

// err returns the error of a record, nil if its severity is below 3.
func (r record) err() error {
	if r.severity() < 3 {
		return nil
	}
	return r.rule().err(r.severity(), r.number("generic"))
}
