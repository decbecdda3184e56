package redaction

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// This file masks columns of tables and arguments of calls: values whose position shows
// what they are.

// table masks the columns of a table that hold secrets by its head, the line of the name
// n. A head consists of names only.
func (d *detector) table(n nameRef) {
	if n.begin < d.tableEnd {
		return
	}
	begin, end := lineBegin(d.s, n.begin), lineEndWithin(d.s, n.end, maxHeader)
	d.tableEnd = end
	d.work += end - n.begin
	mark := strings.IndexAny(d.s[begin:end], ",;\t|")
	if mark < 0 {
		return
	}
	sep := d.s[begin+mark]
	var columns []nameRef
	for lit := range cells(d.s, begin, end, sep) {
		name := strings.Trim(d.text(lit), " \"'`\ufeff")
		if name == "" || len(name) > maxColumn || !allIn(name, &columnSet) || !letterSet.has(name[0]) {
			return
		}
		columns = append(columns, d.named(strings.ReplaceAll(name, " ", "_")))
	}
	if len(columns) < 2 || !slices.ContainsFunc(columns, func(n nameRef) bool { return n.strength >= mediumName }) {
		return
	}
	for d.tableEnd < len(d.s) {
		at := d.tableEnd
		row := slices.Collect(cells(d.s, at, lineEndWithin(d.s, at, maxHeader), sep))
		if len(row) != len(columns) {
			return
		}
		for i, lit := range row {
			if columns[i].strength >= mediumName {
				columns[i].form = "column of a table"
				d.secret(columns[i], cell, lit)
			}
		}
		d.tableEnd = lineEndWithin(d.s, at, maxHeader)
	}
}

// cells yields the cells of the line s[at:end], without quotes.
func cells(s string, at, end int, sep byte) func(yield func(literal) bool) {
	end = at + len(strings.TrimRight(s[at:end], "\r\n"))
	if sep == '|' {
		end = runBack(s, end, &cellMargin, end-at)
		at = run(s, at, &cellMargin, end-at)
	}
	return func(yield func(literal) bool) {
		for more := true; more; at++ {
			lit := literal{start: at, end: end}
			if byteAt(s[:end], at) == '"' {
				lit, _ = quotedAt(s[:end], at)
				at = lit.next
			}
			if i := strings.IndexByte(s[at:end], sep); i >= 0 {
				at += i
			} else {
				at, more = end, false
			}
			if !lit.quoted {
				lit = trimLiteral(s, literal{start: lit.start, end: at})
			}
			if !yield(lit) {
				return
			}
		}
	}
}

// insert masks the values of an SQL statement, whose table begins at at:
// INSERT INTO users (name, password) VALUES ('bob', '...'), ('eve', '...').
func (d *detector) insert(_, _, at int) {
	if at < d.insertEnd {
		return
	}
	table, rest, ok := strings.Cut(d.s[at:min(len(d.s), at+maxColumns)], "(")
	list, _, closed := strings.Cut(rest, ")")
	if !ok || !closed {
		return
	}
	var columns []nameRef
	for name := range strings.SplitSeq(list, ",") {
		if name = strings.Trim(name, " \t\r\n\"'`[]"); !isIdentifier(name) {
			name = ""
		}
		columns = append(columns, d.named(name))
	}
	values := nextLexeme(d.s, at+len(table)+len(list)+len("()"))
	if !strings.EqualFold(d.s[values.begin:values.end], "values") {
		return
	}
	for at = skipSpace(d.s, values.end); byteAt(d.s, at) == '('; {
		at = d.arguments(at+1, func(i int, lit literal, ok bool) bool {
			if ok && i < len(columns) && columns[i].strength != noName {
				columns[i].form = "column of a row"
				d.secret(columns[i], paired, lit)
			}
			return true
		})
		if byteAt(d.s, at) == ')' {
			at = run(d.s, at+1, &listGap, maxGap)
		}
	}
	d.insertEnd = at
}

// A function takes a secret as one of its arguments.
type function struct {
	name string
	word string // folded, with the parenthesis
	arg  int    // which argument, from 0
	how  string // one of functionForms
}

// A judgement is how the classifiers see a secret that no name is bound to.
type judgement struct {
	strength strength
	bind     binding
}

// functionForms are described at the top of rules/calls.rules.
var functionForms = map[string]judgement{"plain": {strongName, argument}, "key": {vendorName, argument}, "mixed": {strongName, member}}

// parseCall reads "call ARGUMENT HOW FUNCTION...".
func parseCall(rs *ruleset, f []string) ([]named, error) {
	if len(f) < 3 || functionForms[f[1]].strength == noName {
		return nil, fmt.Errorf("want \"call ARGUMENT HOW FUNCTION...\" with the number of the argument from 0, and HOW one of plain, key, mixed")
	}
	arg, err := strconv.Atoi(f[0])
	if err != nil || arg < 0 || arg > 9 {
		return nil, fmt.Errorf("the ARGUMENT %s is not from 0 to 9", f[0])
	}
	var out []named
	for _, word := range f[2:] {
		name := f[0] + " " + word
		word = strings.ReplaceAll(word, "~", " ")
		rs.calls = append(rs.calls, function{"call " + name, strings.ToLower(word), arg, f[1]})
		out = append(out, named{name, []string{word}, ""})
	}
	return out, nil
}

// call masks the secret argument of a call, if it is a literal.
func (d *detector) call(index, begin, end int) {
	c := &d.calls[index]
	if d.contextFree || begin > 0 && isAlnum(d.s[begin]) && isAlnum(d.s[begin-1]) && !isUpper(d.s[begin]) && d.s[begin-1] != '_' {
		return
	}
	how := functionForms[c.how]
	d.arguments(end, func(i int, lit literal, ok bool) bool {
		if ok && i == c.arg {
			d.secret(nameRef{begin: begin, end: end, strength: how.strength, rule: c.name}, how.bind, lit)
		}
		return i < c.arg
	})
}

// arguments calls found for the arguments from at on until it returns false. ok is set
// for one literal. It returns where the last one ends.
func (d *detector) arguments(at int, found func(i int, lit literal, ok bool) bool) int {
	for i := 0; ; i++ {
		next, lit, ok := d.argument(run(d.s, at, &spaceSet, maxGap))
		if !found(i, lit, ok) || byteAt(d.s, next) != ',' {
			return next
		}
		at = next + 1
	}
}

// argument reads the argument at at, before next. ok is set if it is one literal.
func (d *detector) argument(at int) (next int, lit literal, ok bool) {
	lit, ok = d.literalAt(at, called)
	before := d.s[at:max(at, lit.start)]
	if call := strings.LastIndexByte(before, '('); ok && !strings.ContainsAny(before[call+1:], "{[") {
		next = lit.next
		if byteAt(d.s, next) == '.' { // a method of it
			next = skipWord(d.s, run(d.s, next+1, &codeIdent, maxName), "()")
		}
		if call >= 0 {
			next = skipWord(d.s, next, ")")
		}
		return run(d.s, next, &spaceSet, maxGap), lit, true
	}
	depth := 0
	for next = at; next < len(d.s) && next-at < maxArgument; next++ {
		switch c := d.s[next]; {
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			depth--
		case depth <= 0 && strings.IndexByte(",()\n;", c) >= 0:
			return next, literal{}, false
		}
	}
	return next, literal{}, false
}
