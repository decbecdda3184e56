package redaction

import (
	"fmt"
	"slices"
	"strings"
)

// A formRule is a contextual rule: the text in which a name and its values have
// fixed places, written as it looks:
//
//	"NAME").fill("VALUE"
//	"VALUE" == NAME
//
// rules/forms.rules describes the words of forms. Blanks and line ends do not count.
//
// Bound: for each name, a form reads at most maxElements+maxSkipped lexemes.
type formRule struct {
	name string
	bind binding
	// of is the predicate of the name, or nil.
	of func(n nameRef) bool
	// before are the elements before NAME, the nearest first, and after those
	// behind it.
	before, after []formElement
	// prev are the bytes that may be before NAME, second those behind the lexeme after it.
	prev, second charset
	// behind is set if the value is behind NAME.
	behind bool
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
	// text is the lexeme in small letters, or the name of the list.
	text string
	list map[string]bool
	// first has the first bytes of the words of the list.
	first charset
	// quoted elements are in quotes.
	quoted bool
	// gap skips what may precede a value. After a word, a blank is required.
	gap       func(s string, i int) int
	afterWord bool
}

type elementKind uint8

const (
	exactLexeme elementKind = iota // the lexeme text
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

// elementWords are the words of forms with a meaning of their own, such as NAME.
var elementWords = map[string]elementKind{
	"NAME": nameItself, "CONSTANT": nameItself, "IDENT": nameItself, "QUOTE": nameQuote, "VALUE": anyValue, "WORD": anyWord, "CLOSE": closers, "TYPE": anyType, "LINE": beginOfLine,
}

// namePredicates are the conditions of the words that match the name.
var namePredicates = map[string]func(n nameRef) bool{
	"CONSTANT": func(n nameRef) bool { return isConstant(n.ident) },
	"IDENT":    func(n nameRef) bool { return isIdentifier(n.ident) },
}

// parseForm reads "form BINDING FORM".
func parseForm(rs *ruleset, f []string) ([]named, error) {
	bind := slices.Index(bindingNames[:], f[0])
	if len(f) < 2 || bind <= int(unbound) {
		return nil, fmt.Errorf("want \"form BINDING FORM\" with one of the bindings %s", strings.Join(bindingNames[1:], ", "))
	}
	name := strings.Join(f[1:], " ")
	r := formRule{name: "form " + name, bind: binding(bind)} //nolint:gosec // an index of bindingNames
	elements, at, err := formElements(name)
	if err != nil {
		return nil, err
	}
	isValue := func(e formElement) bool { return e.kind == anyValue }
	r.of = namePredicates[elements[at].text]
	r.before, r.after = elements[:at], elements[at+1:]
	r.behind = slices.ContainsFunc(r.after, isValue)
	slices.Reverse(r.before)
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
				e.gap, e.afterWord = gapAfter(out)
			}
			out = append(out, e)
		}
		i = end
	}
	if at < 0 || values == 0 || len(out) > maxElements {
		return nil, 0, fmt.Errorf("the form has %d elements: want up to %d with one NAME and a VALUE", len(out), maxElements)
	}
	return out, at, nil
}

// gapAfter returns what skips the text between the last of elements and a value: blanks
// after a name or a comma, a line end and the like after an operator.
func gapAfter(elements []formElement) (gap func(s string, i int) int, afterWord bool) {
	if len(elements) == 0 {
		return skipSpace, false
	}
	switch final := elements[len(elements)-1]; {
	case final.kind == nameItself, final.kind == closers:
		return skipBlanks, true
	case final.kind == nameQuote, final.text == ",":
		return skipBlanks, false
	case final.kind == exactLexeme && lists["operator"][final.text], final.kind == wordOf && lists["operator"][heads[final.text][0]]:
		return skipToValue, false
	case final.kind == anyWord, final.kind == wordOf:
		return skipBlanks, true
	default:
		return skipSpace, codeIdent.has(lastByte(final.text))
	}
}

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
	e.text = strings.ToLower(lexed)
	list, isList := strings.CutPrefix(lexed, "@")
	switch kind, ok := elementWords[lexed]; {
	case ok:
		e.kind, e.text = kind, lexed
	case isList && list != "" && lists[list] == nil:
		return e, 0, fmt.Errorf("the form names the unknown list %q", list)
	case isList && list != "":
		e.kind, e.text, e.list = wordOf, list, lists[list]
		e.first = nearEnd([]formElement{e}, true)
	}
	return e, l.end, nil
}

// selectBy sets prev and second, and returns the bytes that may follow NAME: a fast check, which
// most forms fail.
func (f *formRule) selectBy() (next charset) {
	before, after := withoutQuote(f.before), withoutQuote(f.after)
	f.prev, f.second = nearEnd(before, false), anyByte
	if len(after) > 0 && after[0].kind == exactLexeme && closerSet.has(after[0].text[0]) {
		return anyByte // it is skipped as a closer
	}
	if len(after) > 1 && after[0].isLexeme() {
		f.second = nearEnd(after[1:], true)
	}
	return nearEnd(after, true)
}

// withoutQuote returns the elements without those that close or quote NAME.
func withoutQuote(elements []formElement) []formElement {
	for len(elements) > 0 && (elements[0].kind == nameQuote || elements[0].kind == closers) {
		elements = elements[1:]
	}
	return elements
}

// isLexeme reports whether e matches one lexeme that is no literal.
func (e *formElement) isLexeme() bool {
	return !e.quoted && (e.kind == exactLexeme || e.kind == anyWord || e.kind == wordOf)
}

var anyByte = charset{}.complement()

// nearEnd returns the bytes that the first of elements may begin with, or end with if it
// is before NAME.
func nearEnd(elements []formElement, first bool) charset {
	switch {
	case len(elements) == 0 || !elements[0].quoted && !elements[0].isLexeme():
		return anyByte
	case elements[0].quoted:
		return quoteSet
	case elements[0].kind == anyWord:
		return codeIdent
	}
	words := heads[elements[0].text]
	if elements[0].kind == exactLexeme {
		words = []string{elements[0].text}
	}
	var out charset
	for _, w := range words {
		c := w[len(w)-1:]
		if first {
			c = w[:1]
		}
		out = out.with(c, strings.ToUpper(c))
	}
	return out
}
