package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A literal is a value as it is in the text.
type literal struct {
	start, end int
	quoted     bool
	// next is behind the value and its closing delimiter.
	next cursor
}

// value masks the secrets of the value at c, which n names, and reports whether there is a value. line is set if it is
// on the line behind the name.
func (d *reader) value(n judge.Name, place string, bind judge.Binding, c cursor, line bool) bool {
	if (bind == judge.Assigned || bind == judge.Fallback) && n.Strength >= judge.Medium && d.Names.PlaceholderLen(d.s[c.offset():]) == 0 {
		if line && c.rg.bare && !c.is("{") && !c.is("[") {
			if indented(d, n, place, c) {
				return true
			}
		} else if container(d, n, place, c) {
			return true
		}
		d.branches(n, place, c)
	}
	if bind == judge.Element && n.IsPlural() {
		elements(d, n, place, c)
	}
	lit, found := d.literalAt(c, bind)
	if found = found && (!line || onNextLine(d, n, c, lit)); found {
		d.candidate(n, place, bind, trimmed(d.s, bind, lit))
	}
	return found
}

// afterOperator skips what may stand between an operator and its value: the head of a here
// document, the mark of a block of YAML, a backslash before the line end, and a line end.
// line is set if the value is on the next line.
func afterOperator(c cursor) (at cursor, line bool) {
	at = c.skip(false)
	if outer, left := at.leave(); left && outer.rg.bare && outer.isKind(lex.Name) { // 'token: 'x': the quote ends nothing
		return outer, false
	}
	text := at.text()
	switch {
	case text == "":
		return at, false
	case lex.BeginsWith(c.rg.s[at.offset():], []string{"<<", "$(cat <<"}):
		return at.rg.cursorAt(lex.LineEndWithin(at.rg.s[:at.rg.to], at.offset(), 4<<10)), false
	case text[0] == '|', text[0] == '>':
		k := at.next()
		for k.is("-") || k.is("+") || k.is("2") || k.is("4") {
			k = k.next()
		}
		if k = k.skip(false); at.isKind(lex.Mark) && k.isKind(lex.Newline) {
			return k.skip(true), true
		}
	case text[0] == '\\' && at.next().isKind(lex.Newline):
		return at.next().skip(true), false
	case at.isKind(lex.Newline):
		return at.skip(true), true
	}
	return at, false
}

// onNextLine reports whether a literal on the line below the name n is its value. Text
// without quotes has to be alone on a line that is indented deeper, and no word.
func onNextLine(d *reader, n judge.Name, c cursor, lit literal) bool {
	deeper := indent(d.s, lit.start) > indent(d.s, n.Begin)
	if lit.quoted && c.back().before() == ":" {
		line := strings.TrimLeft(d.s[lex.LineBegin(d.s, n.Begin):n.Begin], " \t\x01}")
		isHead := c.rg.code && judge.Words("blockhead")[line[:lex.Run(line, 0, &lex.LetterSet, len(line))]]
		return deeper && !isHead || strings.Contains(",})", lit.next.skip(true).text()) // of an object, or at the end of the text
	} else if lit.quoted {
		return true
	}
	text, after := d.s[lit.start:lit.end], lit.next.skip(false)
	return deeper && (after.text() == "" || after.isKind(lex.Newline)) && (judge.IsMixed(text) || judge.IsHumanMade(text)) && !strings.HasSuffix(text, ":")
}

// literalAt reads a literal, in quotes or bare, also as the argument of a call that converts it.
func (d *reader) literalAt(c cursor, bind judge.Binding) (literal, bool) {
	at := c
	for range 3 {
		at = literalPrefix(at)
		t, ok := at.token()
		if !ok || t.Kind == lex.Literal && bind == judge.Element && !strings.HasPrefix(at.text(), "<!") {
			break // quotes are text
		}
		if t.Kind == lex.Literal {
			return trim(d.s, literal{t.Inner(), t.InnerEnd(), true, at.next()}), true
		}
		arg, ok := unwrapCall(at)
		if !ok {
			break
		}
		at = arg
	}
	switch {
	case c.text() == "", bind == judge.Compared, bind == judge.Listed, bind == judge.Called, !c.rg.code && !c.rg.bare && bind != judge.Element:
		return literal{}, false
	case c.rg.code:
		// A random token that ends its line of code, such as a line of a configuration that was pasted there.
		text, after := c.text(), c.next().skip(false)
		isPasted := c.isKind(lex.Name) && len(text) >= 20 && judge.IsMixedCase(text) && judge.IsVeryRandom(text) && (after.text() == "" || after.isKind(lex.Newline))
		return literal{c.offset(), c.offset() + len(text), false, c.next()}, isPasted
	}
	return d.bareAt(c, bind)
}

// literalPrefix skips marks that may precede a literal: @"x", $"x", [ "x".
func literalPrefix(c cursor) cursor {
	at := c
	for range 3 {
		text := at.text()
		if len(text) != 1 || strings.IndexByte("@$[{(&*#", text[0]) < 0 {
			break
		}
		if at = at.next(); strings.IndexByte("[{(", text[0]) >= 0 {
			at = at.skip(true)
		}
	}
	if at.isKind(lex.Literal) {
		return at
	}
	return c
}

var calleeSet = lex.SetOf(lex.Digits, lex.Letters, "_.:[]<>")

// unwrapCall returns where the argument begins of a call that only converts it.
func unwrapCall(c cursor) (arg cursor, ok bool) {
	s := c.rg.s[:c.rg.to]
	begin := lex.SkipWord(s, c.offset(), "new ")
	end := lex.Run(s, begin, &calleeSet, 64)
	words := judge.SplitWords(s[begin:end])
	if lex.ByteAt(s, end) != '(' || len(words) == 0 {
		return c, false
	}
	wrappers, joined := judge.Words("wrapper"), strings.Join(words[max(0, len(words)-2):], "")
	if joined == "getbytes" {
		words = words[:len(words)-2]
	} else if !wrappers[words[len(words)-1]] && !wrappers[joined] && s[begin:end] != "_T" {
		return c, false
	}
	return c.rg.cursorAt(end + 1).skip(true), !slices.ContainsFunc(words, func(w string) bool { return judge.Words("indirect")[w] })
}

var (
	bareStops    = lex.SetOf(" \t\r\n\"'`;,&<>(){}[]|")
	elementStops = lex.SetOf("<\r\n")
)

// bareAt reads a value without quotes.
func (d *reader) bareAt(c cursor, bind judge.Binding) (literal, bool) {
	s, at, stops := d.s[:c.rg.to], c.offset(), bareStops
	switch {
	case bind == judge.Element:
		stops = elementStops
	case bind == judge.Assigned && c.rg.outer == nil && judge.WholeLine(s, at):
		stops = lex.SpaceSet
	}
	if at >= d.bareEnd {
		d.bareEnd, d.bareDepth = at, 0
	} else if d.bareDepth++; d.bareDepth > 3 { // names within the values of names
		return literal{}, false
	}
	i := at
	for i < len(s) && i-at < 4<<10 {
		if n := d.Names.PlaceholderLen(s[i:min(len(s), i+64)]); n > 0 {
			i += n
			continue
		}
		if stops.Has(s[i]) && (s[i] != '&' || nextField(s, i)) || s[i] == 1 {
			break
		}
		i++
	}
	isPointer := strings.HasPrefix(s[i:], ">") && i > at && s[i-1] == '-'
	if i == at || isPointer || bind == judge.Element && !strings.HasPrefix(s[lex.Run(s, i, &lex.SpaceSet, len(s)):], "</") {
		return literal{}, false
	}
	d.bareEnd = max(d.bareEnd, i)
	return literal{at, i, false, c.rg.cursorAt(i)}, true
}

// nextField reports whether the & at i begins another field of a query.
func nextField(s string, i int) bool {
	end := lex.Run(s, i+1, &lex.IdentSet, 64)
	entity := lex.ByteAt(s, end) == ';' && (end == i+1 || lex.LetterSet.Has(s[i+1]))
	return end == i+1 || lex.ByteAt(s, end) == '=' || entity
}

// trim removes blanks and line ends on both sides.
func trim(s string, lit literal) literal {
	lit.start = lex.Run(s, lit.start, &lex.SpaceSet, lit.end-lit.start)
	lit.end = lex.RunBack(s, lit.end, &lex.SpaceSet, lit.end-lit.start)
	return lit
}

// trimmed returns the literal without the blanks or the marks of a sentence around it.
func trimmed(s string, bind judge.Binding, lit literal) literal {
	if !lit.quoted && (bind == judge.Stated || bind == judge.Written) {
		lit.end = lit.start + len(strings.TrimRight(s[lit.start:lit.end], ".,;:?)\"'`"))
	}
	return trim(s, lit)
}

// candidate masks the literal, or a part of it, if it is a secret.
func (d *reader) candidate(n judge.Name, place string, bind judge.Binding, lit literal) bool {
	text := d.s[lit.start:lit.end]
	if d.Names.IsPlaceholder(text) { // what is behind it may be more of the value, which an author must not end by a placeholder
		if rest, ok := d.literalAt(lit.next.skip(false), judge.Assigned); ok && !lit.quoted && judge.IsMixed(d.s[rest.start:rest.end]) {
			d.secret(n, place, bind, rest, "")
		}
		return true
	}
	if d.secret(n, place, bind, lit, "") {
		return true
	}
	if lit.quoted && lex.ContainsAny(text, []string{"{{", "<%", "<?", "${"}) && strings.ContainsAny(text, "\"'`") { // "{{ .Values.pw | default "x" }}"
		d.branchEnd = 0
		d.branches(n, place, cursor{&region{s: d.s, toks: lex.Lex(d.s, lit.start, lit.end, lex.Unknown), from: lit.start, to: lit.end, bare: true}, 0})
	}
	user, password, ok := strings.Cut(text, ":")
	if !n.IsPair || !ok || !judge.IsIdentifier(user) || !judge.IsMixed(password) {
		return false
	}
	lit.start += len(user) + 1
	n.Strength = judge.Strong
	return d.secret(n, place, judge.Argument, lit, "")
}

// branches masks the literals in the statement at c that are branches of a conditional
// or a fallback: c ? "a" : "b", "a" if c else "b", x || "a".
func (d *reader) branches(n judge.Name, place string, c cursor) {
	if c.offset() < d.branchEnd {
		return // read with those of a name before
	}
	conditional, depth, before := false, 0, ""
	for ; ; c = c.next() {
		d.work++
		t, ok := c.token()
		text := c.text()
		switch {
		case !ok, text == ";", t.Kind == lex.Newline && depth <= 0 && !judge.Words("branch")[before]:
			d.branchEnd = c.offset()
			return
		case t.Kind == lex.Blank, t.Kind == lex.Comment, t.Kind == lex.Newline:
			continue
		case t.Kind == lex.Literal && (judge.Words("branch")[before] || conditional && before == ":"):
			d.secret(n, place, judge.Fallback, literal{t.Inner(), t.InnerEnd(), true, c.next()}, "")
		case text == "(", text == "[", text == "{":
			depth++
		case text == ")", text == "]", text == "}":
			depth--
		}
		conditional = conditional || strings.HasPrefix(text, "?")
		if text != "(" || before != "default" { // default("x")
			before = strings.ToLower(text[:min(len(text), 16)])
		}
	}
}
