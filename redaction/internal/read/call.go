package read

import (
	"fmt"
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
}{"plain": {judge.Strong, judge.Argument}, "key": {judge.Vendor, judge.Argument}, "mixed": {judge.Strong, judge.Member}}

// AddCall reads "call ARGUMENT HOW FUNCTION..." without the first word.
func (r *Rules) AddCall(f []string) ([]judge.Subject, error) {
	if len(f) < 3 || functionForms[f[1]].strength == judge.NoName {
		return nil, fmt.Errorf("want \"call ARGUMENT HOW FUNCTION...\" with the number of the argument from 0, and HOW one of plain, key, mixed")
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
func (d *reader) call(rg *region, h hit) {
	f := &d.calls[h.index]
	if b := h.begin; b > 0 && lex.IsAlnum(d.s[b]) && lex.IsAlnum(d.s[b-1]) && !lex.IsUpper(d.s[b]) {
		return
	}
	how := functionForms[f.how]
	n := judge.Name{Begin: h.begin, End: h.end, Strength: how.strength, Rule: f.name}
	d.arguments(rg.cursorAt(h.end), func(i int, lit literal, ok bool) bool {
		if ok && i == f.arg {
			d.secret(n, "", how.bind, lit, "")
		}
		return i < f.arg
	})
}

// arguments calls found for the arguments from c on until it returns false. ok is set for an argument that is one
// literal, also with a method or in a call that converts it. It returns what is behind the last one.
func (d *reader) arguments(c cursor, found func(i int, lit literal, ok bool) bool) cursor {
	for i := 0; ; i++ {
		c = c.skip(true)
		lit, ok := d.literalAt(c, judge.Called)
		next, isSimple := argument(d, c, lit)
		if !found(i, lit, ok && isSimple) || !next.is(",") {
			return next
		}
		c = next.next()
	}
}

// argument returns what is behind the argument at c, and whether it is the literal alone.
func argument(d *reader, c cursor, lit literal) (next cursor, isSimple bool) {
	depth, isSimple := 0, true
	for range min(512, 16+max(0, d.budget)) { // tokens of an argument
		d.budget--
		d.work++
		t, ok := c.token()
		if !ok {
			return c, isSimple
		}
		behind := int(t.Start) >= lit.end
		switch text := c.text(); text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth < 0 {
				return c, isSimple
			}
		case ",", ";":
			if depth == 0 || text == ";" {
				return c, isSimple
			}
		case ".", "'", `"`:
		default:
			isSimple = isSimple && !(behind && t.Kind == lex.Mark || behind && t.Kind == lex.Name && c.before() != "." || t.Kind == lex.Literal && int(t.Inner) != lit.start && int(t.Start) != lit.start)
		}
		c = c.next()
	}
	return c, false
}
