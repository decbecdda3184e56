package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// value masks the secrets of the value at c, which n names. line is set if it is on the
// line behind the name. found is set if there is a value, secret if it is one.
func (d *reader) value(n judge.Name, place string, bind judge.Binding, c cursor, line bool) (found, secret bool) {
	if _, ok := c.token(); !ok {
		return false, false
	}
	bound := (bind == judge.Assigned || bind == judge.Fallback) && d.Names.PlaceholderLen(d.s[d.offset(c):]) == 0
	if bound && n.Strength >= judge.Medium {
		if at := d.offset(c); line && c.rg.bare && !d.is(c, "{") && !d.is(c, "[") {
			if d.block(n, place, c) || at < d.listEnd {
				return true, true
			}
		} else if d.container(n, place, c, false) {
			return true, true
		}
		d.branches(n, place, c)
	}
	if bind == judge.Spaced && n.Strength >= judge.Medium && d.is(c, "{") {
		d.container(n, place, c, true)
	}
	lit, found := d.literalAt(c, bind)
	if !found || line && !d.onNextLine(n, c, lit) {
		return false, false
	}
	return true, d.candidate(n, place, bind, d.trimmed(bind, lit))
}

// afterOperator skips what may stand between an operator and its value: the head of a here
// document, the mark of a block of YAML, a backslash before the line end, and a line end.
// line is set if the value is on the next line.
func (d *reader) afterOperator(c cursor) (at cursor, line bool) {
	at = c.skip(false)
	t, ok := at.token()
	if outer, left := at.leave(); left && outer.rg.bare { // 'token: 'x': the quote ends nothing
		if t, ok := outer.token(); ok && t.Kind == lex.Name {
			return outer, false
		}
	}
	if !ok {
		return at, false
	}
	rest := d.s[t.Start:min(len(d.s), int(t.Start)+8)]
	if strings.HasPrefix(rest, "<<") || strings.HasPrefix(rest, "$(cat <<") {
		const most = 64 // tokens of the line with the head
		for k := at; ; k = k.next() {
			if t, ok := k.token(); !ok || k.i > at.i+most {
				return at, false
			} else if t.Kind == lex.Newline {
				return k.next(), false
			}
		}
	}
	if (rest[0] == '|' || rest[0] == '>') && t.Kind == lex.Mark {
		k := at.next()
		for d.is(k, "-") || d.is(k, "+") || d.is(k, "2") || d.is(k, "4") {
			k = k.next()
		}
		if k = k.skip(false); d.isNewline(k) {
			return k.skip(true), true
		}
	}
	if rest[0] == '\\' && d.isNewline(at.next()) {
		return at.next().skip(true), false
	}
	if t.Kind == lex.Newline {
		return at.skip(true), true
	}
	return at, false
}

func (d *reader) isNewline(c cursor) bool {
	t, ok := c.token()
	return ok && t.Kind == lex.Newline
}

// onNextLine reports whether a literal on the line below the name n is its value. Text
// without quotes has to be alone on a line that is indented deeper, and no word.
func (d *reader) onNextLine(n judge.Name, c cursor, lit literal) bool {
	operator, _ := c.back().before()
	colon := d.text(operator) == ":"
	if lit.quoted && !(c.rg.code && colon) {
		return !colon || d.indent(lit.start) > d.indent(n.Begin)
	}
	if lit.quoted { // of a language that ends a head with a colon, such as if password:
		return d.is(lit.next, ",") || d.is(lit.next, "}")
	}
	text := d.s[lit.start:lit.end]
	after := lit.next.skip(false)
	_, more := after.token()
	return d.indent(lit.start) > d.indent(n.Begin) && (!more || d.isNewline(after)) && (judge.IsMixed(text) || judge.IsHumanMade(text)) && !strings.HasSuffix(text, ":")
}

// indent returns how far the line of the offset i is indented. The mark of a list item counts.
func (d *reader) indent(i int) int {
	begin := lex.LineBegin(d.s, i)
	if j := strings.LastIndexByte(d.s[begin:i], 1); j >= 0 {
		begin += j + 1
	}
	end := begin
	for end < i && (d.s[end] == ' ' || d.s[end] == '\t' || d.s[end] == '-' && lex.ByteAt(d.s, end+1) == ' ') {
		end++
	}
	return end - begin
}

// literalAt reads a literal, in quotes or bare, also as the argument of a call that converts it.
func (d *reader) literalAt(c cursor, bind judge.Binding) (literal, bool) {
	at := c
	for range 3 {
		at = d.literalPrefix(at)
		t, ok := at.token()
		if !ok {
			return literal{}, false
		}
		if t.Kind == lex.Literal && bind == judge.Element && !strings.HasPrefix(d.text(t), "<!") {
			break // quotes are text
		}
		if t.Kind == lex.Literal {
			return d.trim(literal{int(t.Inner), int(t.InnerEnd), true, at.next()}), true
		}
		if lit, ok := d.delimited(at); ok {
			return lit, true
		}
		arg, ok := d.unwrapCall(at)
		if !ok {
			break
		}
		at = arg
	}
	switch {
	case bind == judge.Compared || bind == judge.Listed || bind == judge.Called:
		return literal{}, false
	case c.rg.code:
		return d.pastedAt(c)
	case !c.rg.bare && bind != judge.Element:
		return literal{}, false
	}
	return d.bareAt(c, bind)
}

// pastedAt reads a random token without quotes that ends its line of code, such as a line of a
// configuration that was pasted there. It is too random for a name of code.
func (d *reader) pastedAt(c cursor) (literal, bool) {
	const least = 20
	t, ok := c.token()
	if !ok || t.Kind != lex.Name || t.End-t.Start < least {
		return literal{}, false
	}
	after, more := c.next().skip(false).token()
	if more && after.Kind != lex.Newline && after.Kind != lex.Comment {
		return literal{}, false
	}
	if text := d.text(t); !judge.IsMixedCase(text) || !judge.IsVeryRandom(text) {
		return literal{}, false
	}
	return literal{int(t.Start), int(t.End), false, c.next()}, true
}

// literalPrefix skips marks that may precede a literal: @"x", $"x", [ "x".
func (d *reader) literalPrefix(c cursor) cursor {
	at := c
	for range 3 {
		t, ok := at.token()
		if !ok || t.Kind != lex.Mark || t.End != t.Start+1 || strings.IndexByte("@$[{(&*#", d.s[t.Start]) < 0 {
			break
		}
		if at = at.next(); strings.IndexByte("[{(", d.s[t.Start]) >= 0 {
			at = at.skip(true)
		}
	}
	if d.is(c, "_T") && d.is(c.next(), "(") {
		at = c.next().next()
	}
	if t, ok := at.token(); ok && t.Kind == lex.Literal {
		return at
	}
	return c
}

// delimited reads the literal in the quoting operators of Perl and Ruby at c, such as q(...) and %q{...}.
func (d *reader) delimited(c cursor) (literal, bool) {
	i := d.offset(c)
	for _, pair := range judge.Heads("delimiter") {
		open, end, _ := strings.Cut(pair, "_")
		if !strings.HasPrefix(d.s[i:c.rg.to], open) {
			continue
		}
		start := i + len(open)
		text, _, ok := strings.Cut(d.s[start:min(c.rg.to, lex.LineEndWithin(d.s, start, 4<<10))], end)
		stop := start + len(text)
		return literal{start, stop, true, c.rg.cursorAt(stop + len(end))}, ok && strings.IndexByte(text, '\n') < 0
	}
	return literal{}, false
}

var calleeSet = lex.SetOf(lex.Digits, lex.Letters, "_.:[]<>")

// unwrapCall returns where the argument begins of a call that only converts it.
func (d *reader) unwrapCall(c cursor) (arg cursor, ok bool) {
	begin := lex.SkipWord(d.s, d.offset(c), "new ")
	end := min(c.rg.to, lex.Run(d.s, begin, &calleeSet, 64))
	if end >= c.rg.to || d.s[end] != '(' || end <= begin {
		return c, false
	}
	words := judge.SplitWords(d.s[begin:end])
	if len(words) == 0 {
		return c, false
	}
	wrappers, joined := judge.Words("wrapper"), strings.Join(words[max(0, len(words)-2):], "")
	if !wrappers[words[len(words)-1]] && !wrappers[joined] {
		return c, false
	}
	if joined == "getbytes" {
		words = words[:len(words)-2]
	}
	if slices.ContainsFunc(words, func(w string) bool { return judge.Words("indirect")[w] }) {
		return c, false
	}
	return c.rg.cursorAt(end + 1).skip(true), true
}

var (
	bareStops    = lex.SetOf(" \t\r\n\"'`;,&<>(){}[]|")
	elementStops = lex.SetOf("<\r\n")
)

// bareAt reads a value without quotes.
func (d *reader) bareAt(c cursor, bind judge.Binding) (literal, bool) {
	s, at, stops := d.s[:c.rg.to], d.offset(c), bareStops
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
	expression := strings.HasPrefix(s[i:], ">") && i > at && s[i-1] == '-' // a member behind a pointer
	if i == at || expression || bind == judge.Element && !strings.HasPrefix(s[lex.Run(s, i, &lex.SpaceSet, len(s)):], "</") {
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
func (d *reader) trim(lit literal) literal {
	lit.start = lex.Run(d.s, lit.start, &lex.SpaceSet, lit.end-lit.start)
	lit.end = lex.RunBack(d.s, lit.end, &lex.SpaceSet, lit.end-lit.start)
	return lit
}

// trimmed returns the literal without the blanks or the marks of a sentence around it.
func (d *reader) trimmed(bind judge.Binding, lit literal) literal {
	switch {
	case lit.quoted || bind == judge.Element:
		return d.trim(lit)
	case bind == judge.Stated, bind == judge.Written:
		lit.end = lit.start + len(strings.TrimRight(d.s[lit.start:lit.end], ".,;:?)\"'`"))
	}
	return lit
}

// continued masks the rest of a value that a properties file continues on the next line,
// after a backslash.
func (d *reader) continued(n judge.Name, place string, lit literal) {
	if lit.quoted || lex.LastByte(d.s[lit.start:lit.end]) != '\\' || !d.isNewline(lit.next) {
		return
	}
	at := d.offset(lit.next.skip(true))
	end := min(lit.next.rg.to, lex.Run(d.s, at, &lex.NotBlank, 256))
	if at < end && strings.IndexByte(d.s[at:end], '=') < 0 {
		d.report(n, place, at, end)
	}
}

// template masks the default in a template that a literal is: "{{ .Values.pw | default "x" }}".
func (d *reader) template(n judge.Name, place string, lit literal) {
	text := d.s[lit.start:lit.end]
	if !strings.Contains(text, "{{") && !strings.Contains(text, "<%") && !strings.Contains(text, "<?") && !strings.Contains(text, "${") || !strings.ContainsAny(text, "\"'`") {
		return
	}
	rg := &region{toks: lex.Lex(d.s, lit.start, lit.end, lex.Unknown), from: lit.start, to: lit.end, bare: true}
	d.branchEnd = 0
	d.branches(n, place, cursor{rg, 0})
}

// pair masks the password of a literal such as bob:password.
func (d *reader) pair(n judge.Name, place string, lit literal) bool {
	user, password, ok := strings.Cut(d.s[lit.start:lit.end], ":")
	if !ok || !judge.IsIdentifier(user) || !judge.IsMixed(password) {
		return false
	}
	lit.start += len(user) + 1
	n.Strength = judge.Strong
	return d.secret(n, place, judge.Argument, lit, "")
}

// branches masks the literals in the statement at c that are branches of a conditional
// or a fallback: c ? "a" : "b", "a" if c else "b", x || "a".
func (d *reader) branches(n judge.Name, place string, c cursor) {
	if d.offset(c) < d.branchEnd {
		return // read with those of a name before
	}
	conditional, depth, before := false, 0, ""
	for {
		d.work++
		t, ok := c.token()
		if !ok {
			break
		}
		text := d.text(t)
		switch t.Kind {
		case lex.Blank, lex.Comment:
			c = c.next()
			continue
		case lex.Newline:
			if depth <= 0 && !judge.Words("branch")[before] {
				d.branchEnd = int(t.Start)
				return
			}
			c = c.next()
			continue
		case lex.Literal:
			if judge.Words("branch")[before] || conditional && before == ":" {
				d.secret(n, place, judge.Fallback, literal{int(t.Inner), int(t.InnerEnd), true, c.next()}, "")
			}
		case lex.Mark:
			switch text {
			case "(", "[", "{":
				depth++
			case ")", "]", "}":
				depth--
			case ";":
				d.branchEnd = int(t.Start)
				return
			}
			conditional = conditional || text[0] == '?'
		}
		if text != "(" || before != "default" { // default("x")
			before = strings.ToLower(text[:min(len(text), 16)])
		}
		c = c.next()
	}
	d.branchEnd = d.offset(c)
}

// bareAfter returns the text behind a placeholder, if it is the last of its line and looks made up: an
// author must not end a value by a placeholder.
func (d *reader) bareAfter(lit literal) (literal, bool) {
	if lit.quoted || lit.next.rg == nil {
		return lit, false
	}
	rest, ok := d.literalAt(lit.next.skip(false), judge.Assigned)
	return rest, ok && judge.IsMixed(d.s[rest.start:rest.end])
}
