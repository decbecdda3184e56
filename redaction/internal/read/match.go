package read

import (
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A matcher is the state of matching a form around a name.
type matcher struct {
	*reader
	form   *form
	values []literal
	// place is where the value begins if it ends the form: it may be a list or a call.
	place    cursor
	hasPlace bool
	line     bool // the value is on the next line
}

// match masks the values of the forms around the name n. Of the forms with a value
// behind n, only the longest one that matches counts.
func match(d *reader, n judge.Name, before, after cursor) {
	for before.i > 0 && before.rg.toks[before.i-1].Kind == lex.Mark && strings.IndexByte("$@&*#", before.before()[0]) >= 0 {
		before.i--
	}
	var buffer [48]*form
	bound := false
	for _, f := range d.index.at(after, buffer[:0]) {
		if bound && f.behind || f.word == "CONSTANT" && !judge.IsConstant(n.Ident) || f.word == "IDENT" && !judge.IsIdentifier(n.Ident) {
			continue
		}
		m := matcher{reader: d, form: f}
		if !m.backward(before, f.before) || !m.forward(after, f.after) {
			continue
		}
		found, secret := len(m.values) > 0, false
		for _, lit := range m.values {
			secret = d.candidate(n, f.name, f.bind, lit) || secret
		}
		if m.hasPlace {
			found, secret = d.value(n, f.name, f.bind, m.place, m.line)
		}
		if f.behind && found && (secret || f.bind != judge.Written) { // a sentence binds only a secret
			bound = true
		}
	}
}

// forward matches the elements behind c.
func (m *matcher) forward(c cursor, elements []element) bool {
	for k := range elements {
		e, ok := &elements[k], true
		m.work++
		switch e.kind {
		case skipped:
			return m.skipTo(c, elements[k+1:])
		case nameQuote:
			c, ok = c.leave()
		case closers:
			c = c.closers()
		case anyType: // before a blank
			c = c.skip(false)
			i := lex.SkipWord(m.s, c.offset(), "&'static ", "&")
			end := lex.Run(m.s, i, &typeSet, 64)
			ok = end > i && end <= c.rg.to && lex.IsAlnum(m.s[i]) && lex.ByteAt(m.s, end) == ' '
			c = c.rg.cursorAt(end)
		case anyValue:
			c, ok = m.valueAt(e, c, k == len(elements)-1)
		default:
			at := c.skip(true)
			if e.kind == anyWord && !e.quoted && strings.Contains(m.s[c.offset():at.offset()], "\n") {
				return false // WORD is on the line of what is before it
			}
			c, ok = at.next(), e.matches(at)
		}
		if !ok {
			return false
		}
	}
	return true
}

var typeSet = lex.SetOf(lex.Digits, lex.Letters, "_.<>[]?*|")

// matches reports whether an element of one token matches the one behind c.
func (e *element) matches(c cursor) bool {
	t, ok := c.token()
	if !ok || e.quoted != (t.Kind == lex.Literal) {
		return false
	}
	text := c.rg.s[t.Inner:t.InnerEnd]
	switch e.kind {
	case exactToken:
		return strings.EqualFold(text, e.text)
	case anyWord:
		return e.quoted || t.Kind == lex.Name
	}
	return len(text) < 40 && e.list[strings.ToLower(text)]
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
		at, line = afterOperator(c)
	}
	if last && !e.quoted {
		m.place, m.hasPlace, m.line = at, true, line
		return at, at.text() != ""
	}
	lit, ok := m.literalAt(at, m.form.bind)
	if !ok || e.quoted && !lit.quoted {
		return at, false
	}
	m.values = append(m.values, trimmed(m.s, m.form.bind, lit))
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
		if c = c.skip(true); c.text() == "" || c.isKind(lex.Mark) && strings.IndexByte("<>;#", c.text()[0]) >= 0 {
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
			if begin := lex.RunBack(m.s, c.offset(), &lex.BlankSet, 80); begin > 0 && m.s[begin-1] != '\n' && begin != c.rg.from {
				return false
			}
			continue
		case e.kind == anyValue && !e.quoted:
			end := lex.RunBack(m.s, c.offset(), &lex.BlankSet, 80)
			begin := max(c.rg.from, lex.RunBack(m.s, end, &lex.NotBlank, 64))
			if begin >= end {
				return false
			}
			m.values = append(m.values, trimmed(m.s, m.form.bind, literal{begin, end, false, c}))
			c = c.rg.cursorAt(begin)
			continue
		}
		if c = c.back(); c.i == 0 {
			return false
		}
		c.i--
		t, ok := c.token()
		switch {
		case e.kind != anyValue:
			ok = ok && e.matches(c)
		case t.Kind == lex.Literal:
			m.values = append(m.values, literal{int(t.Inner), int(t.InnerEnd), true, c.next()})
		default:
			ok = false
		}
		if !ok {
			return false
		}
	}
	return true
}
