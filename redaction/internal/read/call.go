package read

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A function takes a secret as one of its arguments.
type function struct {
	name string
	word string // in small letters, with the parenthesis
	arg  int    // which argument, from 0
	how  string // one of functionForms
}

// functionForms say how the judge sees a secret that no name is bound to. The top of
// rules/calls.rules describes them.
var functionForms = map[string]struct {
	strength judge.Strength
	bind     judge.Binding
}{"plain": {judge.Strong, judge.Argument}, "key": {judge.Vendor, judge.Argument}, "mixed": {judge.Strong, judge.Member}, "answer": {judge.Strong, judge.Argument}}

// AddCall reads "call ARGUMENT HOW FUNCTION..." without the first word.
func (r *Rules) AddCall(f []string) ([]judge.Subject, error) {
	if len(f) < 3 || functionForms[f[1]].strength == judge.NoName {
		return nil, fmt.Errorf("want \"call ARGUMENT HOW FUNCTION...\" with the number of the argument from 0, and HOW one of plain, key, mixed, answer")
	}
	arg, err := strconv.Atoi(f[0])
	if err != nil || arg < 0 || arg > 9 {
		return nil, fmt.Errorf("the ARGUMENT %s is not from 0 to 9", f[0])
	}
	var out []judge.Subject
	for _, word := range f[2:] {
		name := f[0] + " " + word
		word = strings.ReplaceAll(word, "~", " ")
		r.calls = append(r.calls, function{"call " + name, strings.ToLower(word), arg, f[1]})
		out = append(out, judge.Subject{Rule: name, Text: word})
	}
	return out, nil
}

// call masks the secret argument of a call, if it is a literal.
func (d *reader) call(rg *region, h lex.Hit) {
	f := &d.calls[h.Index]
	how := functionForms[f.how]
	if f.how == "answer" && !answersSecret(d, rg, h.Begin) {
		return
	}
	n := judge.Name{Begin: h.Begin, End: h.End, Strength: how.strength, Rule: f.name}
	at := rg.cursorAt(h.End)
	if f.how == "answer" && at.is("--") {
		at = at.next()
	}
	d.arguments(at, func(i int, lit literal, ok bool) bool {
		if ok && i == f.arg {
			if f.how == "answer" {
				lit.end -= len(lineEnds.FindString(d.s[lit.start:lit.end]))
			}
			d.secret(n, "", how.bind, lit, "")
		}
		return i < f.arg
	})
}

var (
	// prompt matches a text up to an answer. Its last literal or pattern may ask for a secret: the last word names it.
	prompt = regexp.MustCompile(`([A-Za-z]+)(?: (?:for|of) [^"\n]{1,48})?[ :?*\\s$]*["'/}][^"'/]*$`)
	// lineEnds matches the escapes that end an answer.
	lineEnds = regexp.MustCompile(`(?:\\[nr])+$`)
)

// answersSecret reports whether what is written at i answers a question for a secret.
func answersSecret(d *reader, rg *region, i int) bool {
	const far = 128
	m := prompt.FindStringSubmatch(d.s[max(rg.from, i-far):i])
	return m != nil && d.cache.Of(d.Names, m[1]).Strength >= judge.Medium
}

// arguments calls found for the arguments from c on until it returns false. ok is set for an argument that is one
// literal, also with a method or in a call that converts it. It returns what is behind the last one.
func (d *reader) arguments(c cursor, found func(i int, lit literal, ok bool) bool) cursor {
	for i := 0; ; i++ {
		c = c.skip(true)
		lit, ok := d.literalAt(c, judge.Called)
		if ok {
			behind := lit.next.skip(true)
			ok = behind.text() == "" || behind.isKind(lex.Mark) && strings.Contains(",.;)]}'\"", behind.text())
		}
		for depth, rest := 0, min(512, 16+max(0, d.budget)); depth > 0 || !c.is(","); c = c.next() { // tokens of the argument
			if text := c.text(); c.isKind(lex.Mark) && strings.Contains("([{", text) {
				depth++
			} else if c.isKind(lex.Mark) && strings.Contains(")]}", text) {
				depth--
			}
			if rest--; depth < 0 || rest < 0 || c.text() == "" || c.is(";") {
				found(i, lit, ok)
				return c
			}
			d.budget--
			d.work++
		}
		if !found(i, lit, ok) {
			return c
		}
		c = c.next()
	}
}
