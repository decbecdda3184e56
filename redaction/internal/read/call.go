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
	if b := h.begin; b > 0 && lex.IsAlnum(d.s[b]) && lex.IsAlnum(d.s[b-1]) && !lex.IsUpper(d.s[b]) && d.s[b-1] != '_' {
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

// arguments calls found for the arguments from c on until it returns false. ok is set for
// an argument that is one literal. It returns what is behind the last one.
func (d *reader) arguments(c cursor, found func(i int, lit literal, ok bool) bool) cursor {
	for i := 0; ; i++ {
		c = c.skip(true)
		next, lit, ok := d.argument(c)
		if !found(i, lit, ok) || !d.is(next, ",") {
			return next
		}
		c = next.next()
	}
}

// argument reads the argument at c, before next. ok is set if it is one literal, also with a
// method or in a call that converts it.
func (d *reader) argument(c cursor) (next cursor, lit literal, ok bool) {
	most := min(512, 16+max(0, d.budget)) // tokens of an argument
	lit, ok = d.literalAt(c, judge.Called)
	if ok && d.is(c, "{") || ok && d.is(c, "[") && !strings.Contains(d.s[d.offset(c):lit.start], "(") {
		ok = false // a list of several
	}
	depth, simple := 0, true
	start := c
	if ok {
		start = lit.next
	}
	for range most {
		d.budget--
		d.work++
		t, more := start.token()
		if !more {
			return start, lit, ok && simple
		}
		switch text := d.text(t); text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			if depth--; depth < 0 && (!ok || d.closesAll(c, start)) {
				return start, lit, ok && simple
			}
		case ",":
			if depth <= 0 {
				return start, lit, ok && simple
			}
		case ";":
			return start, lit, ok && simple
		default:
			simple = simple && (t.Kind == lex.Blank || t.Kind == lex.Newline || t.Kind == lex.Comment || text == "." || t.Kind == lex.Name && d.isMember(start))
		}
		start = start.next()
	}
	return start, literal{}, false
}

// closesAll reports whether the bracket at c is that of the call itself and not one that the
// argument opened before its literal.
func (d *reader) closesAll(from, c cursor) bool {
	return strings.Count(d.s[d.offset(from):d.offset(c)+1], ")") > strings.Count(d.s[d.offset(from):d.offset(c)], "(")
}

// isMember reports whether a point is before the name at c.
func (d *reader) isMember(c cursor) bool {
	t, ok := c.before()
	return ok && d.text(t) == "."
}
