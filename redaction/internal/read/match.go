package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A cursor is a place between tokens: before rg.toks[i].
type cursor struct {
	rg *region
	i  int
}

// token returns the token behind c. ok is not set at the end of a region or section.
func (c cursor) token() (t lex.Token, ok bool) {
	if c.rg == nil || c.i >= len(c.rg.toks) || c.rg.toks[c.i].Kind == lex.Break {
		return lex.Token{}, false
	}
	return c.rg.toks[c.i], true
}

func (c cursor) next() cursor { return cursor{c.rg, c.i + 1} }

// skip skips blanks and comments, and line ends if lines is set.
func (c cursor) skip(lines bool) cursor {
	for {
		t, ok := c.token()
		if !ok || t.Kind != lex.Blank && t.Kind != lex.Comment && !(lines && t.Kind == lex.Newline) {
			return c
		}
		c.i++
	}
}

// back is skip before c, also over line ends.
func (c cursor) back() cursor {
	for c.i > 0 {
		k := c.rg.toks[c.i-1].Kind
		if k != lex.Blank && k != lex.Comment && k != lex.Newline {
			break
		}
		c.i--
	}
	return c
}

// before returns the token that ends at c.
func (c cursor) before() (t lex.Token, ok bool) {
	if c.i == 0 || c.rg.toks[c.i-1].Kind == lex.Break {
		return lex.Token{}, false
	}
	return c.rg.toks[c.i-1], true
}

// leave returns the place behind the literal that ends at c.
func (c cursor) leave() (cursor, bool) {
	if c.rg == nil || c.i < len(c.rg.toks) || c.rg.outer == nil {
		return c, false
	}
	return cursor{c.rg.outer, c.rg.at + 1}, true
}

// offset returns where c is in the text.
func (d *reader) offset(c cursor) int {
	switch {
	case c.rg == nil:
		return len(d.s)
	case c.i < len(c.rg.toks):
		return int(c.rg.toks[c.i].Start)
	}
	return c.rg.to
}

// cursorAt returns the place of the first token that begins at the offset or behind it.
func (rg *region) cursorAt(offset int) cursor {
	i, _ := slices.BinarySearchFunc(rg.toks, offset, func(t lex.Token, at int) int { return int(t.Start) - at })
	return cursor{rg, i}
}

// text returns the text of a token.
func (d *reader) text(t lex.Token) string { return d.s[t.Start:t.End] }

// is reports whether the token behind c is the mark or word text.
func (d *reader) is(c cursor, text string) bool {
	t, ok := c.token()
	return ok && t.Kind != lex.Literal && d.text(t) == text
}

// closers skips what may close around a name: the end of the literal that it is in,
// brackets, a brace in quotes.
func (d *reader) closers(c cursor) cursor {
	quoted := false
	for n := range 6 {
		if outer, ok := c.leave(); ok {
			c, quoted = outer, true
			continue
		}
		t, ok := c.token()
		if !ok || t.Kind != lex.Mark {
			return c
		}
		switch text := d.text(t); {
		case text == "]", text == ")", text == "}" && quoted, text == "*" && n == 0, (text == `"` || text == "'" || text == "`") && !c.rg.code:
		case (text == "?" || text == "!") && d.is(c.next(), ":"):
		default:
			return c
		}
		c = c.next()
	}
	return c
}

// match masks the values of the forms around the name n. Of the forms with a value
// behind n, only the longest one that matches counts.
func (d *reader) match(n judge.Name, before, after cursor) {
	for before.i > 0 {
		t := before.rg.toks[before.i-1]
		if t.Kind != lex.Mark || strings.IndexByte("$@&*#", d.s[t.Start]) < 0 {
			break
		}
		before.i--
	}
	var buffer [24]*form
	forms := buffer[:0]
	t, ok := after.skip(true).token()
	forms = d.index.plain.at(forms, d.s, t, ok)
	if outer, left := after.leave(); left {
		t, ok = outer.skip(true).token()
		forms = d.index.quoted.at(forms, d.s, t, ok)
	}
	t, ok = d.closers(after.skip(false)).skip(true).token()
	forms = d.index.closed.at(forms, d.s, t, ok)
	slices.SortStableFunc(forms, func(a, b *form) int { return a.rank - b.rank })
	bound := false
	for _, f := range forms {
		if bound && f.behind || f.of != nil && !f.of(n) {
			continue
		}
		m := matcher{reader: d, form: f}
		if m.backward(before, f.before) && m.forward(after, f.after) {
			bound = m.binds(n) && f.behind || bound
		}
	}
}

// A matcher is the state of matching a form.
type matcher struct {
	*reader
	form   *form
	values []literal
	// place is where the value begins if it ends the form: it may be a list or a call.
	place    cursor
	hasPlace bool
	line     bool // the value is on the next line
}

// binds masks the values of a form that matches and reports whether it is the one that
// binds the name: there is a value, and a secret if the binding is one of sentences.
func (m *matcher) binds(n judge.Name) bool {
	found, secret := len(m.values) > 0, false
	for _, lit := range m.values {
		secret = m.candidate(n, m.form.name, m.form.bind, lit) || secret
	}
	if m.hasPlace {
		found, secret = m.value(n, m.form.name, m.form.bind, m.place, m.line)
	}
	return found && (secret || m.form.bind != judge.Written)
}

// forward matches the elements behind c.
func (m *matcher) forward(c cursor, elements []element) bool {
	for k := range elements {
		e := &elements[k]
		if e.kind == skipped {
			return m.skipTo(c, elements[k+1:])
		}
		next, ok := m.element(e, c, k == len(elements)-1)
		if !ok {
			return false
		}
		c = next
	}
	return true
}

// element matches the element e at c and returns what is behind it.
func (m *matcher) element(e *element, c cursor, last bool) (cursor, bool) {
	m.work++
	switch e.kind {
	case nameQuote:
		return c.leave()
	case closers:
		return m.closers(c), true
	case anyType:
		return m.typeAt(c.skip(false))
	case anyValue:
		return m.valueAt(e, c, last)
	}
	at := c.skip(true)
	t, ok := at.token()
	if !ok || e.kind == anyWord && !e.quoted && strings.Contains(m.s[m.offset(c):t.Start], "\n") {
		return c, false // WORD is on the line of what is before it
	}
	return at.next(), m.matches(e, t)
}

// matches reports whether an element of one token matches t.
func (m *matcher) matches(e *element, t lex.Token) bool {
	text := m.text(t)
	if e.quoted {
		if t.Kind != lex.Literal {
			return false
		}
		text = m.s[t.Inner:t.InnerEnd]
	} else if t.Kind == lex.Literal {
		return false
	}
	switch e.kind {
	case exactToken:
		return strings.EqualFold(text, e.text)
	case anyWord:
		return e.quoted || t.Kind == lex.Name
	case wordOf:
		return len(text) < 40 && e.list[strings.ToLower(text)]
	}
	return false
}

var typeSet = lex.SetOf(lex.Digits, lex.Letters, "_.<>[]?*|")

// typeAt reads a type before a blank.
func (m *matcher) typeAt(c cursor) (cursor, bool) {
	i := lex.SkipWord(m.s, m.offset(c), "&'static ", "&")
	end := lex.Run(m.s, i, &typeSet, 64)
	return c.rg.cursorAt(end), end > i && end <= c.rg.to && lex.IsAlnum(m.s[i]) && lex.ByteAt(m.s, end) == ' '
}

// valueAt matches VALUE at c.
func (m *matcher) valueAt(e *element, c cursor, last bool) (cursor, bool) {
	at, line := c, false
	switch e.gap {
	case anyGap:
		at = c.skip(true)
	case blankGap, closeGap:
		at = c.skip(false)
		if e.gap == blankGap && at == c {
			return at, false
		}
	case assignGap:
		at, line = m.afterOperator(c)
	}
	if last && !e.quoted {
		m.place, m.hasPlace, m.line = at, true, line
		_, ok := at.token()
		return at, ok
	}
	lit, ok := m.literalAt(at, m.form.bind)
	if !ok || e.quoted && !lit.quoted {
		return at, false
	}
	m.values = append(m.values, m.trimmed(m.form.bind, lit))
	return lit.next, true
}

// skipTo matches elements at c or up to maxSkipped tokens behind it, in the same statement.
func (m *matcher) skipTo(c cursor, elements []element) bool {
	values := m.values
	for range maxSkipped {
		if m.forward(c, elements) {
			return true
		}
		m.values = values
		c = c.skip(true)
		t, ok := c.token()
		if !ok || t.Kind == lex.Mark && strings.IndexByte("<>;#", m.s[t.Start]) >= 0 {
			return false
		}
		c = c.next()
	}
	return false
}

// backward matches the elements before c, the nearest first.
func (m *matcher) backward(c cursor, elements []element) bool {
	for k := range elements {
		e := &elements[k]
		switch {
		case e.kind == nameQuote:
			if c.i > 0 || c.rg.outer == nil {
				return false
			}
			c = cursor{c.rg.outer, c.rg.at}
			continue
		case e.kind == beginOfLine:
			begin := lex.RunBack(m.s, m.offset(c), &lex.BlankSet, 80)
			if begin > 0 && m.s[begin-1] != '\n' && begin != c.rg.from {
				return false
			}
			continue
		case e.kind == anyValue && !e.quoted:
			end := lex.RunBack(m.s, m.offset(c), &lex.BlankSet, 80)
			begin := max(c.rg.from, lex.RunBack(m.s, end, &lex.NotBlank, 64))
			if begin >= end {
				return false
			}
			m.values = append(m.values, m.trimmed(m.form.bind, literal{begin, end, false, c}))
			c = c.rg.cursorAt(begin)
			continue
		}
		c = c.back()
		t, ok := c.before()
		if !ok {
			return false
		}
		if e.kind == anyValue {
			if t.Kind != lex.Literal {
				return false
			}
			m.values = append(m.values, literal{int(t.Inner), int(t.InnerEnd), true, c})
		} else if !m.matches(e, t) {
			return false
		}
		c.i--
	}
	return true
}
