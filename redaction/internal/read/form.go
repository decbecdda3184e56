package read

import (
	"fmt"
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
	// rank orders the forms: those with more elements come first.
	rank int
}

const (
	maxElements = 20
	maxSkipped  = 16 // tokens that ... stands for
)

// An element matches a token, or several.
type element struct {
	kind elementKind
	text string          // the token in small letters
	list map[string]bool // of @LIST
	// quoted elements are in quotes.
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

// elementWords are the words of forms with a meaning of their own, such as NAME.
var elementWords = map[string]elementKind{
	"NAME": nameItself, "CONSTANT": nameItself, "IDENT": nameItself, "QUOTE": nameQuote, "VALUE": anyValue, "WORD": anyWord, "CLOSE": closers, "TYPE": anyType, "LINE": beginOfLine,
}

// A gap is what may be between an element and the value behind it.
type gap uint8

const (
	anyGap    gap = iota // blanks and line ends
	blankGap             // blanks, at least one
	closeGap             // blanks or nothing
	assignGap            // what may follow an operator: the value may be on the next line
)

// gapAfter returns what may be between the last of elements and a value.
func gapAfter(elements []element) gap {
	if len(elements) == 0 {
		return anyGap
	}
	operators, final := judge.Words("operator"), elements[len(elements)-1]
	switch {
	case final.kind == nameQuote, final.text == ",":
		return closeGap
	case final.kind == exactToken && operators[final.text], final.kind == wordOf && operators[judge.Heads(final.text)[0]]:
		return assignGap
	case final.kind != exactToken, lex.CodeIdent.Has(lex.LastByte(final.text)):
		return blankGap
	}
	return anyGap
}

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
	elements, at, err := elementsOf(text)
	if err != nil {
		return nil, err
	}
	out := form{name: "form " + text, bind: judge.Binding(bind), word: elements[at].text, before: slices.Clone(elements[:at]), after: elements[at+1:]}
	out.behind = slices.ContainsFunc(out.after, func(e element) bool { return e.kind == anyValue })
	slices.Reverse(out.before)
	for _, e := range elements {
		if e.kind != closers {
			out.rank--
		}
	}
	r.forms = append(r.forms, out)
	return []judge.Subject{{Rule: text}}, nil
}

// elementsOf returns the elements of a form, of which the one at at is NAME.
func elementsOf(s string) (out []element, at int, err error) {
	at, values := -1, 0
	toks := lex.Lex(s, 0, len(s), lex.Unknown)
	for i := 0; i < len(toks); i++ {
		t := toks[i]
		if t.Kind == lex.Blank {
			continue
		}
		if strings.HasPrefix(s[t.Start:], "...") {
			out = append(out, element{kind: skipped})
			for i+1 < len(toks) && int(toks[i+1].End) <= int(t.Start)+3 {
				i++
			}
			continue
		}
		e, text := element{quoted: t.Kind == lex.Literal}, s[t.Inner:t.InnerEnd]
		list, isList := strings.CutPrefix(text, "@")
		if isList && list == "" && i+1 < len(toks) && toks[i+1].Kind == lex.Name {
			i++
			list = s[toks[i].Start:toks[i].End]
		}
		if isList && list != "" {
			text = list
			if e.kind, e.list = wordOf, judge.Words(list); e.list == nil {
				return nil, 0, fmt.Errorf("the form names the unknown list %q", list)
			}
		} else if e.kind = elementWords[text]; e.kind == exactToken {
			text = strings.ToLower(text)
		}
		e.text = text
		switch e.kind {
		case nameItself:
			if at = len(out); e.quoted {
				at++
				out = append(out, element{kind: nameQuote}, e, element{kind: nameQuote})
				continue
			}
		case anyValue:
			values++
			e.gap = gapAfter(out)
		}
		out = append(out, e)
	}
	if at < 0 || values == 0 || len(out) > maxElements {
		return nil, 0, fmt.Errorf("the form has %d elements: want up to %d with one NAME and a VALUE", len(out), maxElements)
	}
	return out, at, nil
}

// A formIndex has the forms by the token behind NAME, or behind what closes around it, in small letters: at anyName
// those that any word may follow, at anyLiteral those that a literal has to follow, at "" the others. Forms with more
// elements come first.
type formIndex map[string][]*form

const (
	anyName    = " "
	anyLiteral = `"`
)

func indexOf(forms []form) formIndex {
	x := formIndex{}
	for i := range forms {
		f := &forms[i]
		first := slices.IndexFunc(f.after, func(e element) bool { return e.kind != nameQuote && e.kind != closers })
		switch {
		case first < 0:
			x[""] = append(x[""], f)
		case f.after[first].quoted:
			x[anyLiteral] = append(x[anyLiteral], f)
		case f.after[first].kind == wordOf:
			for w := range f.after[first].list {
				x[w] = append(x[w], f)
			}
		case f.after[first].kind == exactToken:
			x[f.after[first].text] = append(x[f.after[first].text], f)
		case f.after[first].kind == anyWord:
			x[anyName] = append(x[anyName], f)
		default:
			x[""] = append(x[""], f)
		}
	}
	return x
}

// at returns the forms that the text behind c does not rule out.
func (x formIndex) at(c cursor, buffer []*form) []*form {
	const longest = 16
	places := [3]cursor{c.skip(true), c, c.skip(false).closers().skip(true)}
	if outer, ok := c.leave(); ok {
		places[1] = outer.skip(true)
	}
	keys := [8]string{""}
	n := 1
	add := func(key string) {
		if len(x[key]) > 0 && !slices.Contains(keys[:n], key) {
			keys[n] = key
			n++
		}
	}
	for _, p := range places {
		text := p.text()
		switch {
		case p.isKind(lex.Literal):
			add(anyLiteral)
			continue
		case p.isKind(lex.Name):
			add(anyName)
		}
		if len(text) <= longest {
			add(strings.ToLower(text))
		}
	}
	forms := buffer
	for _, key := range keys[:n] {
		forms = append(forms, x[key]...)
	}
	slices.SortStableFunc(forms, func(a, b *form) int { return a.rank - b.rank })
	return forms
}
