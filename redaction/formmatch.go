package redaction

import (
	"cmp"
	"slices"
	"strings"
)

// A formPlace is a name in a text with the bytes that [formRule] checks.
type formPlace struct {
	begin, end int
	prev, next [2]byte
	// lastOnLine is set if the line ends behind the name.
	lastOnLine bool
}

// placeOf returns where forms match around the name n.
func (d *detector) placeOf(n nameRef) formPlace {
	s, begin := d.s, len(strings.TrimRight(d.s[:n.begin], "$@&*#"))
	before, after := runBack(s, begin, &spaceSet, maxGap), skipSpace(s, n.end)
	p := formPlace{begin: begin, end: n.end}
	p.prev[0], p.next[0] = byteAt(s, before-1), byteAt(s, after)
	p.next[1] = p.next[0]
	p.lastOnLine = strings.IndexByte(s[n.end:after], '\n') >= 0
	if quoteSet.has(p.next[0]) {
		p.next[1] = byteAt(s, skipSpace(s, after+1))
	}
	if quoteSet.has(p.prev[0]) {
		i := before - 1
		if byteAt(s, i-1) == '@' { // of Objective-C
			i--
		}
		p.prev[1] = byteAt(s, runBack(s, i, &spaceSet, maxGap)-1)
	}
	return p
}

// formsBefore returns the forms by the byte that may follow NAME and blanks, the
// longest first.
func formsBefore(forms []formRule) (out [256][]*formRule) {
	forms = slices.Clone(forms)
	slices.SortStableFunc(forms, func(a, b formRule) int { return cmp.Compare(b.length(), a.length()) })
	for next := range out {
		for i := range forms {
			if forms[i].next[0].has(byte(next)) {
				out[next] = append(out[next], &forms[i])
			}
		}
	}
	return out
}

// length returns how many elements of f have to be there.
func (f *formRule) length() (n int) {
	for _, e := range slices.Concat(f.before, f.after) {
		if e.kind != closers {
			n++
		}
	}
	return n
}

// mayMatch reports whether the bytes beside a name do not rule out the form, which
// is one of formsBefore.
func (f *formRule) mayMatch(p *formPlace) bool {
	return f.prev[0].has(p.prev[0]) && f.next[1].has(p.next[1]) && f.prev[1].has(p.prev[1]) &&
		!(f.onLine && p.lastOnLine)
}

// matchForms masks the values of the forms around the name n. Of the forms with a value
// behind n, only the longest one that matches counts.
func (d *detector) matchForms(n nameRef) {
	place, bound := d.placeOf(n), false
	for _, f := range d.formsBefore[place.next[0]] {
		if bound && f.behind || !f.mayMatch(&place) || f.of != nil && !f.of(n.ident) {
			continue
		}
		if m := (formMatch{d: d, form: f}); m.around(place) {
			n.form = f.name
			bound = m.binds(n) && f.behind || bound
		}
	}
}

// binds masks the values of a form that matches and reports whether it is the one that
// binds the name: there is a value, and a secret if the binding is one of sentences.
func (m *formMatch) binds(n nameRef) bool {
	found, secret := m.count > 0, false
	for _, lit := range m.values[:m.count] {
		secret = m.d.candidate(n, m.form.bind, lit) || secret
	}
	if m.at > 0 {
		found, secret = m.d.value(n, m.form.bind, m.at)
	}
	return found && (secret || m.form.bind != written && m.form.bind != shared)
}

// A formMatch is the state of matching a form.
type formMatch struct {
	d      *detector
	form   *formRule
	values [2]literal
	count  int
	// at is where the value begins if it ends the form: it may be a list or a call.
	at int
}

// around matches the elements on both sides of a name, those without ... first.
func (m *formMatch) around(p formPlace) bool {
	if m.form.skips {
		return m.backward(p.begin, m.form.before) && m.forward(p.end, m.form.after)
	}
	return m.forward(p.end, m.form.after) && m.backward(p.begin, m.form.before)
}

// take notes a value of the form.
func (m *formMatch) take(lit literal) bool {
	if m.count == len(m.values) {
		return false
	}
	m.values[m.count] = lit
	m.count++
	return true
}

// matches reports whether an element of one lexeme matches l.
func (m *formMatch) matches(e *formElement, l lexeme) bool {
	lexed := m.d.s[l.begin:l.end]
	if e.quoted {
		if l.kind != lexText {
			return false
		}
		lexed = m.d.text(l.value)
	}
	switch e.kind {
	case exactLexeme:
		return strings.EqualFold(lexed, e.text)
	case beginOfLine:
		return allIn(m.d.s[lineBegin(m.d.s, l.end):l.end], &blankSet)
	case anyWord:
		return e.quoted || l.kind == lexWord
	case wordOf:
		return (e.quoted || e.first.has(byteAt(lexed, 0))) && e.list[strings.ToLower(lexed)]
	}
	return e.kind == anyValue && l.kind == lexText && m.take(l.value)
}

// forward matches the elements behind i.
func (m *formMatch) forward(i int, elements []formElement) bool {
	for k := range elements {
		e := &elements[k]
		if e.kind == skipped {
			return m.skipForward(i, elements[k+1:])
		}
		end, ok := m.element(e, i, k == len(elements)-1)
		if !ok {
			return false
		}
		i = end
	}
	return true
}

// element matches the element e at i and returns where it ends.
func (m *formMatch) element(e *formElement, i int, last bool) (end int, ok bool) {
	s := m.d.s
	switch e.kind {
	case nameQuote:
		return i + 1, quoteSet.has(byteAt(s, i))
	case closers:
		return skipClosers(s, i), true
	case anyType:
		i = skipWord(s, skipBlanks(s, i), "&'static ", "&")
		end = run(s, i, &typeSet, maxName)
		return end, end > i && isAlnum(s[i]) && byteAt(s, end) == ' '
	case anyValue:
		return m.valueAt(e, i, last)
	}
	l := m.d.ahead.get(s, i, nextLexeme)
	onLine := e.kind != anyWord || e.quoted || strings.IndexByte(s[i:l.begin], '\n') < 0
	return l.end, onLine && m.matches(e, l) // WORD is on the line of what is before it
}

// valueAt matches VALUE at i.
func (m *formMatch) valueAt(e *formElement, i int, last bool) (end int, ok bool) {
	at := e.gap(m.d.s, i)
	if e.afterWord && at == i {
		return at, false
	}
	if last && !e.quoted {
		m.at = at
		return at, at < len(m.d.s)
	}
	lit, ok := m.d.literalAt(at, m.form.bind)
	return lit.next, ok && (lit.quoted || !e.quoted) && m.take(m.d.trimmed(m.form.bind, lit))
}

func (m *formMatch) skipForward(i int, elements []formElement) bool {
	exact := len(elements) > 0 && elements[0].kind == exactLexeme // so that l decides
	for range maxSkipped {
		l := m.d.ahead.get(m.d.s, i, nextLexeme)
		if (!exact || m.matches(&elements[0], l)) && m.forward(i, elements) {
			return true
		}
		if endsStatement(m.d.s, l) {
			return false
		}
		i = l.end
	}
	return false
}

// endsStatement reports whether ... does not skip l.
func endsStatement(s string, l lexeme) bool {
	return l.kind == noLexeme || l.kind == lexMark && strings.IndexByte("<>;#", s[l.begin]) >= 0
}

// backward matches the elements before i, the nearest first.
func (m *formMatch) backward(i int, elements []formElement) bool {
	s := m.d.s
	for k := range elements {
		e := &elements[k]
		l := lexeme{begin: i - 1}
		switch {
		case e.kind == skipped:
			return m.skipBackward(i, elements[k+1:])
		case e.kind == nameQuote:
			if !quoteSet.has(byteAt(s, i-1)) {
				return false
			}
		case e.kind == anyValue && !e.quoted:
			end := runBack(s, i, &blankSet, maxGap)
			l.begin = runBack(s, end, &notBlank, maxName)
			if l.begin == end || !m.take(m.d.trimmed(m.form.bind, literal{l.begin, end, false, end})) {
				return false
			}
		default:
			if l = m.d.behind.get(s, i, lexemeBefore); e.kind == beginOfLine {
				l = lexeme{begin: i, end: i}
			}
			if !m.matches(e, l) {
				return false
			}
		}
		if i = l.begin; quoteSet.has(s[i]) && byteAt(s, i-1) == '@' { // of Objective-C
			i--
		}
	}
	return true
}

func (m *formMatch) skipBackward(i int, elements []formElement) bool {
	for range maxSkipped {
		if m.backward(i, elements) {
			return true
		}
		l := m.d.behind.get(m.d.s, i, lexemeBefore)
		if endsStatement(m.d.s, l) {
			return false
		}
		i = l.begin
	}
	return false
}
