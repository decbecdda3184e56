package redaction

import (
	"fmt"
	"slices"
	"strings"
)

// A formRule is a contextual rule: the text in which a name and its value have
// fixed places, written as it looks:
//
//	"NAME").fill("VALUE"
//	"VALUE" == NAME
//
// NAME is an identifier that a name rule rates. VALUE is the text that the classifiers decide on; unless it is quoted in the form, it may be
// bare. Quotes stand for any quotes, WORD for any identifier, @LIST for a word of a
// list of words.txt, CLOSE for quotes and brackets that close around NAME, and ... for up
// to maxSkipped lexemes of the same statement or tag. Blanks, line ends and
// comments do not count.
//
// Bound: for each name, a form reads at most maxElements+maxSkipped lexemes.
type formRule struct {
	name string
	bind binding
	// before are the elements before NAME, the nearest first, and after those
	// behind it.
	before, after []formElement
	// prev and next are the bytes that may stand beside NAME and blanks, and then
	// those beyond a quote: the fast check that most forms fail.
	prev, next [2]charset
	// onLine is set if WORD follows NAME, which is on the line of NAME.
	onLine bool
	// skips is set if the form has ... behind NAME.
	skips bool
}

const (
	maxElements = 20
	maxSkipped  = 16
)

// A formElement matches a lexeme, or several.
type formElement struct {
	kind elementKind
	// text is the lexeme in small letters, or the name of a list.
	text string
	// quoted elements are in quotes.
	quoted bool
}

type elementKind uint8

const (
	exactLexeme elementKind = iota // the lexeme text
	anyWord                        // WORD
	wordOf                         // @LIST
	nameItself                     // NAME
	nameQuote                      // a quote around NAME
	closers                        // CLOSE
	skipped                        // ...
	anyValue                       // VALUE or "VALUE"
)

// bindingNames are the bindings that a form rule may name.
var bindingNames = map[string]binding{
	"assigned": assigned, "fallback": fallback, "compared": compared, "listed": listed,
	"called": called, "element": element, "spaced": spaced, "stated": stated, "paired": paired,
}

// parseForm reads "form BINDING FORM".
func parseForm(rs *ruleset, f []string) ([]named, error) {
	if len(f) < 2 || bindingNames[f[0]] == unbound {
		return nil, fmt.Errorf("want \"form BINDING FORM\" with one of the bindings assigned, fallback, compared, listed, called, element, spaced, stated, paired")
	}
	name := strings.Join(f[1:], " ")
	r := formRule{name: "form " + name, bind: bindingNames[f[0]]}
	elements, at, err := formElements(name)
	if err != nil {
		return nil, err
	}
	r.before, r.after = elements[:at], elements[at+1:]
	slices.Reverse(r.before)
	r.prev, r.next = besideName(r.before, false), besideName(r.after, true)
	r.onLine = len(r.after) > 0 && r.after[0].kind == anyWord && !r.after[0].quoted
	r.skips = slices.ContainsFunc(r.after, func(e formElement) bool { return e.kind == skipped })
	rs.forms = append(rs.forms, r)
	return []named{{name, nil, ""}}, nil
}

// formElements returns the elements of a form, of which the one at at is NAME.
func formElements(s string) (out []formElement, at int, err error) {
	at, values := -1, 0
	for i := skipSpace(s, 0); i < len(s); i = skipSpace(s, i) {
		e, end, err := formElementAt(s, i)
		if err != nil {
			return nil, 0, err
		}
		switch {
		case e.kind == nameItself && e.quoted:
			at = len(out) + 1
			out = append(out, formElement{kind: nameQuote}, e, formElement{kind: nameQuote})
		case e.kind == nameItself:
			at = len(out)
			out = append(out, e)
		default:
			if e.kind == anyValue {
				values++
			}
			out = append(out, e)
		}
		i = end
	}
	if at < 0 || values != 1 || len(out) > maxElements {
		return nil, 0, fmt.Errorf("the form has %d elements: want up to %d with one NAME and one VALUE", len(out), maxElements)
	}
	return out, at, nil
}

// elementWords are the words of forms that stand for something else.
var elementWords = map[string]elementKind{"NAME": nameItself, "VALUE": anyValue, "WORD": anyWord, "CLOSE": closers}

// formElementAt reads the element of a form at i, and returns where it ends.
func formElementAt(s string, i int) (e formElement, end int, err error) {
	if strings.HasPrefix(s[i:], "...") {
		return formElement{kind: skipped}, i + len("..."), nil
	}
	l := nextLexeme(s, i)
	lexed := s[l.begin:l.end]
	if e.quoted = l.kind == lexText; e.quoted {
		lexed = s[l.value.start:l.value.end]
	} else if lexed == "@" && codeIdent.has(byteAt(s, l.end)) {
		l = nextLexeme(s, l.end)
		lexed += s[l.begin:l.end]
	}
	list, isList := strings.CutPrefix(lexed, "@")
	if kind, ok := elementWords[lexed]; ok {
		e.kind = kind
	} else if isList && list != "" && lists[list] == nil {
		return e, 0, fmt.Errorf("the form names the unknown list %q", list)
	} else if isList && list != "" {
		e.kind, e.text = wordOf, list
	} else {
		e.text = strings.ToLower(lexed)
	}
	return e, l.end, nil
}

// besideName returns the bytes that the elements may have beside NAME, and those
// beyond the quote around NAME.
func besideName(elements []formElement, first bool) [2]charset {
	all := charset{}.complement()
	switch {
	case len(elements) == 0:
		return [2]charset{all, all}
	case elements[0].kind == nameQuote && len(elements) > 1:
		return [2]charset{quoteSet, nearEnd(elements[1], first)}
	}
	return [2]charset{nearEnd(elements[0], first), all}
}

// nearEnd returns the bytes that e may begin with, or end with if it is not the first.
func nearEnd(e formElement, first bool) charset {
	switch {
	case e.kind == nameQuote, e.quoted:
		return quoteSet
	case e.kind == closers:
		return closerSet
	case e.kind == exactLexeme && first:
		return setOf(e.text[:1], strings.ToUpper(e.text[:1]))
	case e.kind == exactLexeme:
		final := e.text[len(e.text)-1:]
		return setOf(final, strings.ToUpper(final))
	case e.kind == anyWord, e.kind == wordOf:
		return codeIdent
	}
	return charset{}.complement()
}

// A formPlace is a name in a text with the bytes that [formRule] checks.
type formPlace struct {
	begin, end int
	prev, next [2]byte
	// lastOnLine is set if the line ends behind the name.
	lastOnLine bool
}

// placeOf returns where forms match around the name n.
func (d *detector) placeOf(n nameRef) formPlace {
	s, begin := d.s, len(strings.TrimRight(d.s[:n.begin], "$@&*"))
	before, after := runBack(s, begin, &spaceSet, maxGap), skipSpace(s, n.end)
	p := formPlace{begin: begin, end: n.end}
	p.prev[0], p.next[0] = byteAt(s, before-1), byteAt(s, after)
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

// formsBefore returns the forms by the byte that may follow NAME and blanks.
func formsBefore(forms []formRule) (out [256][]*formRule) {
	for next := range out {
		for i := range forms {
			if forms[i].next[0].has(byte(next)) {
				out[next] = append(out[next], &forms[i])
			}
		}
	}
	return out
}

// mayMatch reports whether the bytes beside a name do not rule out the form, which
// is one of formsBefore.
func (f *formRule) mayMatch(p *formPlace) bool {
	return f.prev[0].has(p.prev[0]) && f.next[1].has(p.next[1]) && f.prev[1].has(p.prev[1]) &&
		!(f.onLine && p.lastOnLine)
}

// matchForms masks the values of the forms around the name n. It reports whether
// a form has its value behind n, so that no other text is.
func (d *detector) matchForms(n nameRef) (bound bool) {
	place := d.placeOf(n)
	for _, f := range d.formsBefore[place.next[0]] {
		if !f.mayMatch(&place) {
			continue
		}
		m := formMatch{d: d, form: f}
		if !m.around(place) {
			continue
		}
		if m.at > 0 {
			named := n
			named.rule = f.name
			if !d.prosePair(named, m.at) {
				d.value(named, f.bind, m.at)
			}
			bound = true
			continue
		}
		m.lit = d.bounded(n, f.bind, m.lit)
		if d.exceeded(&d.values, classOf(n), m.lit.start, m.lit.end) {
			return true
		}
		if d.isSecret(n, f.bind, m.lit, d.text(m.lit)) {
			d.place = n.rule
			d.report(classOf(n), f.name, m.lit.start, m.lit.end)
		}
		bound = bound || m.lit.start > n.end
	}
	return bound
}

// A formMatch is the state of matching a form.
type formMatch struct {
	d    *detector
	form *formRule
	lit  literal
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

// matches reports whether an element of one lexeme matches l.
func (m *formMatch) matches(e formElement, l lexeme) bool {
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
	case anyWord:
		return e.quoted || l.kind == lexWord
	case wordOf:
		return lists[e.text][strings.ToLower(lexed)]
	case anyValue:
		m.lit = l.value
		return l.kind == lexText
	}
	return false
}

// forward matches the elements behind i.
func (m *formMatch) forward(i int, elements []formElement) bool {
	s := m.d.s
	for k, e := range elements {
		switch e.kind {
		case nameQuote:
			if i >= len(s) || !quoteSet.has(s[i]) {
				return false
			}
			i++
		case closers:
			end, _ := skipClosers(s, i)
			if end == i {
				return false
			}
			i = end
		case skipped:
			return m.skipForward(i, elements[k+1:])
		case anyValue:
			i = skipSpace(s, i)
			if k == len(elements)-1 && !e.quoted {
				m.at = i
				return i < len(s)
			}
			lit, ok := m.d.literalAt(i, m.form.bind)
			if !ok || e.quoted && !lit.quoted {
				return false
			}
			m.lit, i = lit, lit.next
		default:
			l := nextLexeme(s, i)
			if !m.matches(e, l) || e.kind == anyWord && !e.quoted && strings.IndexByte(s[i:l.begin], '\n') >= 0 {
				return false // WORD is on the line of what is before it
			}
			i = l.end
		}
	}
	return true
}

func (m *formMatch) skipForward(i int, elements []formElement) bool {
	exact := len(elements) > 0 && elements[0].kind == exactLexeme // so that l decides
	for range maxSkipped {
		l := nextLexeme(m.d.s, i)
		if (!exact || m.matches(elements[0], l)) && m.forward(i, elements) {
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
	for k, e := range elements {
		switch e.kind {
		case nameQuote:
			if i == 0 || !quoteSet.has(s[i-1]) {
				return false
			}
			if i--; i > 0 && s[i-1] == '@' { // of Objective-C
				i--
			}
		case skipped:
			return m.skipBackward(i, elements[k+1:])
		default:
			l := lexemeBefore(s, i)
			if !m.matches(e, l) {
				return false
			}
			if i = l.begin; l.kind == lexText && i > 0 && s[i-1] == '@' {
				i--
			}
		}
	}
	return true
}

func (m *formMatch) skipBackward(i int, elements []formElement) bool {
	for range maxSkipped {
		if m.backward(i, elements) {
			return true
		}
		l := lexemeBefore(m.d.s, i)
		if endsStatement(m.d.s, l) {
			return false
		}
		i = l.begin
	}
	return false
}
