package read

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A form is a contextual rule: the text in which a name and its values have fixed
// places, written as it looks:
//
//	"NAME").fill("VALUE"
//	"VALUE" == NAME
//
// rules/forms.rules describes the words of forms. Blanks, comments and line ends do not count.
type form struct {
	name string
	bind judge.Binding
	word string // NAME, CONSTANT or IDENT
	// before are the elements before NAME, the nearest first, and after those behind it.
	before, after []element
	// behind is set if the value is behind NAME.
	behind bool
	// size is the number of elements that have to be there.
	size int
}

const (
	maxElements = 20
	maxSkipped  = 16 // tokens that ... stands for
)

// An element matches a token, or several.
type element struct {
	kind   elementKind
	text   string          // the token in small letters
	list   map[string]bool // of @LIST
	quoted bool
	// gap is what may precede a value.
	gap gap
}

type elementKind uint8

const (
	exactToken  elementKind = iota // the token text
	anyWord                        // WORD
	wordOf                         // @LIST
	nameItself                     // NAME, CONSTANT, IDENT
	nameQuote                      // QUOTE, or a quote around NAME
	closers                        // CLOSE
	skipped                        // ...
	anyValue                       // VALUE or "VALUE"
	anyType                        // TYPE
	beginOfLine                    // LINE
)

// elementWords are the words of forms with a meaning of their own.
var elementWords = map[string]elementKind{"NAME": nameItself, "CONSTANT": nameItself, "IDENT": nameItself, "QUOTE": nameQuote, "VALUE": anyValue, "TYPE": anyType, "WORD": anyWord, "CLOSE": closers, "...": skipped, "LINE": beginOfLine}

// A gap is what may be between an element and the value behind it.
type gap uint8

const (
	anyGap    gap = iota // blanks and line ends
	blankGap             // blanks, at least one
	lineGap              // blanks or nothing
	assignGap            // what may follow an operator: the value may be on the next line
)

// AddForm reads "form BINDING FORM" without the first word.
func (r *Rules) AddForm(f []string) (subjects []judge.Subject, err error) {
	bind := -1
	if len(f) > 1 {
		bind = slices.Index(judge.BindingNames[:], f[0])
	}
	if bind <= int(judge.Unbound) {
		return nil, fmt.Errorf("want \"form BINDING FORM\" with one of the bindings %s", strings.Join(judge.BindingNames[1:], ", "))
	}
	text := strings.Join(f[1:], " ")
	elements, err := elementsOf(text)
	if err != nil {
		return nil, err
	}
	is := func(kind elementKind) func(element) bool { return func(e element) bool { return e.kind == kind } }
	at := slices.IndexFunc(elements, is(nameItself))
	if at < 0 || !slices.ContainsFunc(elements, is(anyValue)) || len(elements) > maxElements {
		return nil, fmt.Errorf("the form has %d elements: want up to %d with one NAME and a VALUE", len(elements), maxElements)
	}
	out := form{name: "form " + text, bind: judge.Binding(bind), word: elements[at].text, before: slices.Clone(elements[:at]), after: elements[at+1:]}
	slices.Reverse(out.before)
	out.behind = slices.ContainsFunc(out.after, is(anyValue))
	out.size = len(elements)
	if slices.ContainsFunc(elements, is(closers)) {
		out.size--
	}
	r.forms = append(r.forms, out)
	return []judge.Subject{{Rule: text}}, nil
}

// elementsOf returns the elements of a form.
func elementsOf(s string) (out []element, err error) {
	toks := lex.Lex(s, 0, len(s), lex.Unknown)
	for i := 0; i < len(toks); i++ {
		e := element{quoted: toks[i].Kind == lex.Literal, text: s[toks[i].Inner():toks[i].InnerEnd()]}
		if toks[i].Kind == lex.Blank {
			continue
		}
		if i+1 < len(toks) && (e.text == ".." || e.text == "@" && toks[i+1].Kind == lex.Name) { // the lexer divides ... and @LIST
			i++
			e.text += s[toks[i].Start:toks[i].End]
		}
		list, isList := strings.CutPrefix(e.text, "@")
		switch e.kind = elementWords[e.text]; {
		case isList && list != "":
			if e.kind, e.list = wordOf, judge.Words(list); e.list == nil {
				return nil, fmt.Errorf("the form names the unknown list %q", list)
			}
			e.text = judge.Heads(list)[0]
		case e.kind == nameItself && e.quoted:
			out = append(out, element{kind: nameQuote}, e, element{kind: nameQuote})
			continue
		case e.kind == anyValue && len(out) > 0:
			e.gap = out[len(out)-1].gapBehind()
		case e.kind == exactToken:
			e.text = strings.ToLower(e.text)
		}
		out = append(out, e)
	}
	return out, nil
}

// gapBehind returns what may be between the element and a value.
func (e *element) gapBehind() gap {
	isFixed := e.kind == exactToken || e.kind == wordOf
	switch {
	case e.kind == nameQuote, e.text == ",":
		return lineGap
	case isFixed && judge.Words("operator")[e.text]:
		return assignGap
	case e.kind != exactToken, lex.CodeIdent.Has(lex.LastByte(e.text)):
		return blankGap
	}
	return anyGap
}

// A formIndex has the forms, those with more elements first, by the token behind NAME, or behind what closes around
// it, in small letters: at anyName those that any word may follow, at anyLiteral those that a literal has to follow, at
// "" the others.
type formIndex map[string][]int

const (
	anyName    = " "
	anyLiteral = `"`
)

func (r *Rules) indexForms() {
	slices.SortStableFunc(r.forms, func(a, b form) int { return b.size - a.size })
	r.index = formIndex{}
	for i, f := range r.forms {
		keys := []string{""}
		if k := slices.IndexFunc(f.after, func(e element) bool { return e.kind != nameQuote && e.kind != closers }); k >= 0 {
			switch e := f.after[k]; {
			case e.quoted:
				keys[0] = anyLiteral
			case e.kind == wordOf:
				keys = slices.Collect(maps.Keys(e.list))
			case e.kind == exactToken:
				keys[0] = e.text
			case e.kind == anyWord:
				keys[0] = anyName
			}
		}
		for _, key := range keys {
			r.index[key] = append(r.index[key], i)
		}
	}
}

// formsAt returns the forms that the text behind a name that ends at c does not rule out.
func (r *Rules) formsAt(c cursor, buffer []int) []int {
	const longest = 16
	found := append(buffer, r.index[""]...)
	behind, _ := c.leave()
	for _, p := range [...]cursor{behind.skip(true), c.skip(false).closers().skip(true)} {
		text := p.text()
		switch {
		case p.isKind(lex.Literal):
			text = anyLiteral
		case p.isKind(lex.Name):
			found = append(found, r.index[anyName]...)
		}
		if len(text) <= longest && text != "" {
			found = append(found, r.index[strings.ToLower(text)]...)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// A matcher is the state of matching a form around a name.
type matcher struct {
	*reader
	bind   judge.Binding
	values []literal
	// place is where the value begins if it ends the form: it may be a list or a call.
	place    cursor
	hasPlace bool
	line     bool // the value is on the next line
}

// match masks the values of the forms around the name n. Of the forms with a value
// behind n, only the longest one that matches counts.
func match(d *reader, n judge.Name, before, after cursor) {
	for before.i > 0 && len(before.before()) == 1 && strings.IndexByte("$@&*#", before.before()[0]) >= 0 {
		before.i--
	}
	var buffer [64]int
	bound := false
	for _, i := range d.formsAt(after, buffer[:0]) {
		f := &d.forms[i]
		m := matcher{reader: d, bind: f.bind}
		if bound && f.behind || f.word == "IDENT" && !judge.IsIdentifier(n.Ident) || f.word == "CONSTANT" && !judge.IsConstant(n.Ident) || !m.backward(before, f.before) || !m.forward(after, f.after) {
			continue
		}
		for _, lit := range m.values {
			d.candidate(n, f.name, f.bind, lit)
		}
		found := len(m.values) > 0
		if m.hasPlace {
			found = d.value(n, f.name, f.bind, m.place, m.line)
		}
		bound = bound || f.behind && found
	}
}

// forward matches the elements behind c.
func (m *matcher) forward(c cursor, elements []element) bool {
	for k := range elements {
		e, ok := &elements[k], true
		m.work++
		switch e.kind {
		case skipped: // tokens of the same statement
			values := m.values
			for range maxSkipped {
				if m.forward(c, elements[k+1:]) {
					return true
				}
				m.values = values
				if c = c.skip(true); c.text() == "" || c.isKind(lex.Mark) && strings.IndexByte("<>;#", c.text()[0]) >= 0 {
					return false
				}
				c = c.next()
			}
			return false
		case nameQuote:
			c, ok = c.leave()
		case closers:
			c = c.closers()
		case anyType:
			c, ok = c.skip(false).skipType()
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

// backward matches the elements before c, the nearest first.
func (m *matcher) backward(c cursor, elements []element) bool {
	for k := range elements {
		e := &elements[k]
		if e.kind == nameQuote {
			if c.i > 0 || c.rg.outer == nil {
				return false
			}
			c = cursor{c.rg.outer, c.rg.at}
			continue
		}
		at := c.back()
		if e.kind == beginOfLine {
			return at.i == 0 || strings.Contains(m.s[at.offset():c.offset()], "\n")
		}
		if c = at; c.i == 0 {
			return false
		}
		if e.kind == anyValue && !e.quoted { // what is between blanks
			for c.i > 0 && c.back() == c {
				c.i--
			}
			m.values = append(m.values, trimmed(m.s, m.bind, literal{c.offset(), at.offset(), false, at}))
			continue
		}
		c.i--
		if !e.matches(c) {
			return false
		}
		if t, _ := c.token(); e.kind == anyValue {
			m.values = append(m.values, literal{t.Inner(), t.InnerEnd(), true, c.next()})
		}
	}
	return true
}

// skipType skips a type on one line, such as &str, string[], Map<String, String> and str | None. Outside brackets, it
// has no commas, and no name follows another.
func (c cursor) skipType() (next cursor, ok bool) {
	depth, afterName := 0, false
	for begin := c; ; c = c.next() {
		text := c.text()
		switch {
		case c.isKind(lex.Blank):
			continue
		case c.isKind(lex.Name) && (depth > 0 || !afterName):
		case c.isKind(lex.Mark) && (lex.AllIn(text, &typeMarks) || text == "::" || depth > 0 && (text == "," || text == ";")):
			depth += strings.Count(text, "[") + strings.Count(text, "<") - strings.Count(text, "]") - strings.Count(text, ">")
		default:
			return c, c != begin && depth == 0
		}
		afterName = c.isKind(lex.Name)
	}
}

var typeMarks = lex.SetOf(".<>[]?*|&")

// matches reports whether an element of one token matches the one behind c.
func (e *element) matches(c cursor) bool {
	t, ok := c.token()
	if !ok || e.quoted != (t.Kind == lex.Literal) {
		return false
	}
	text := c.rg.s[t.Inner():t.InnerEnd()]
	switch e.kind {
	case exactToken:
		return strings.EqualFold(text, e.text)
	case wordOf:
		return len(text) < 40 && e.list[strings.ToLower(text)]
	}
	return e.quoted || t.Kind == lex.Name
}

// valueAt matches VALUE at c.
func (m *matcher) valueAt(e *element, c cursor, last bool) (cursor, bool) {
	at, line := c.skip(e.gap == anyGap), false
	switch {
	case e.gap == blankGap && at == c:
		return at, false
	case e.gap == assignGap:
		at, line = afterOperator(c)
	}
	if last && !e.quoted {
		m.place, m.hasPlace, m.line = at, true, line
		return at, at.text() != ""
	}
	lit, ok := m.literalAt(at, m.bind)
	if !ok || e.quoted && !lit.quoted {
		return at, false
	}
	m.values = append(m.values, trimmed(m.s, m.bind, lit))
	return lit.next, true
}
