package redaction

import (
	"cmp"
	"slices"
	"strings"
)

// A formIndex has, for each byte that may follow a name and what quotes and closes it, the
// forms that may match there, the longest first.
type formIndex [256][]*formRule

func newFormIndex(forms []formRule) *formIndex {
	var sorted []*formRule
	for i := range forms {
		sorted = append(sorted, &forms[i])
	}
	slices.SortStableFunc(sorted, func(a, b *formRule) int { return cmp.Compare(b.length(), a.length()) })
	x := &formIndex{}
	for _, f := range sorted {
		next := f.selectBy()
		for c := range x {
			if next.has(byte(c)) {
				x[c] = append(x[c], f)
			}
		}
	}
	return x
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

// at calls found with the forms that the bytes beside the name s[begin:end] do not
// rule out.
func (x *formIndex) at(s string, begin, end int, found func(f *formRule)) {
	before := runBack(s, begin, &spaceSet, maxGap)
	if quoteSet.has(byteAt(s, before-1)) {
		before = runBack(s, before-1, &spaceSet, maxGap)
	}
	l := nextLexeme(s, skipClosers(s, skipSpace(s, end)))
	prev, second := byteAt(s, before-1), byteAt(s, skipSpace(s, l.end))
	for _, f := range x[byteAt(s, l.begin)] {
		if f.prev.has(prev) && f.second.has(second) {
			found(f)
		}
	}
}

// matchForms masks the values of the forms around the name n. Of the forms with a value
// behind n, only the longest one that matches counts.
func (d *detector) matchForms(n nameRef) {
	begin := n.begin
	for begin > 0 && sigilSet.has(d.s[begin-1]) {
		begin--
	}
	bound := false
	d.forms.at(d.s, begin, n.end, func(f *formRule) {
		if bound && f.behind || f.of != nil && !f.of(n) {
			return
		}
		d.work += formWork
		if m := (formMatch{d: d, form: f}); m.around(begin, n.end) {
			n.form = f.name
			bound = m.binds(n) && f.behind || bound
		}
	})
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
	return found && (secret || m.form.bind != written)
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
func (m *formMatch) around(begin, end int) bool {
	if m.form.skips {
		return m.backward(begin, m.form.before) && m.forward(end, m.form.after)
	}
	return m.forward(end, m.form.after) && m.backward(begin, m.form.before)
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
	m.d.work += lexemeWork
	l := nextLexeme(s, i)
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
		m.d.work += lexemeWork
		l := nextLexeme(m.d.s, i)
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
			if l = lexemeBefore(s, i); e.kind == beginOfLine {
				l = lexeme{begin: i, end: i}
			}
			if !m.matches(e, l) {
				return false
			}
		}
		i = l.begin
	}
	return true
}
