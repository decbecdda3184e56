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
	// of is the predicate of the name, or nil.
	of func(n judge.Name) bool
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
	// text is the token in small letters, or the name of the list.
	text string
	list map[string]bool
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

// A gap is what may be between an element and the value behind it.
type gap uint8

const (
	anyGap    gap = iota // blanks and line ends
	blankGap             // blanks, at least one
	closeGap             // blanks or nothing
	assignGap            // what may follow an operator: the value may be on the next line
)

// elementWords are the words of forms with a meaning of their own, such as NAME.
var elementWords = map[string]elementKind{
	"NAME": nameItself, "CONSTANT": nameItself, "IDENT": nameItself, "QUOTE": nameQuote, "VALUE": anyValue, "WORD": anyWord, "CLOSE": closers, "TYPE": anyType, "LINE": beginOfLine,
}

// namePredicates are the conditions of the words that match the name.
var namePredicates = map[string]func(n judge.Name) bool{
	"CONSTANT": func(n judge.Name) bool { return judge.IsConstant(n.Ident) },
	"IDENT":    func(n judge.Name) bool { return judge.IsIdentifier(n.Ident) },
}

// AddForm reads "form BINDING FORM" without the first word.
func (r *Rules) AddForm(f []string) (subject judge.Subject, err error) {
	bind := -1
	if len(f) > 1 {
		bind = slices.Index(judge.BindingNames[:], f[0])
	}
	if bind <= int(judge.Unbound) {
		return subject, fmt.Errorf("want \"form BINDING FORM\" with one of the bindings %s", strings.Join(judge.BindingNames[1:], ", "))
	}
	text := strings.Join(f[1:], " ")
	out := form{name: "form " + text, bind: judge.Binding(bind)}
	elements, at, err := elementsOf(text)
	if err != nil {
		return subject, err
	}
	out.of = namePredicates[elements[at].text]
	out.before, out.after = slices.Clone(elements[:at]), elements[at+1:]
	out.behind = slices.ContainsFunc(out.after, func(e element) bool { return e.kind == anyValue })
	slices.Reverse(out.before)
	for _, e := range elements {
		if e.kind != closers {
			out.rank--
		}
	}
	r.forms = append(r.forms, out)
	return judge.Subject{Rule: text}, nil
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
		e := element{quoted: t.Kind == lex.Literal}
		text := s[t.Inner:t.InnerEnd]
		if text == "@" && i+1 < len(toks) && toks[i+1].Kind == lex.Name {
			i++
			text += s[toks[i].Start:toks[i].End]
		}
		e.text = strings.ToLower(text)
		list, isList := strings.CutPrefix(text, "@")
		switch kind, ok := elementWords[text]; {
		case ok:
			e.kind, e.text = kind, text
		case isList && list != "" && judge.Words(list) == nil:
			return nil, 0, fmt.Errorf("the form names the unknown list %q", list)
		case isList && list != "":
			e.kind, e.text, e.list = wordOf, list, judge.Words(list)
		}
		switch {
		case e.kind == nameItself && e.quoted:
			at = len(out) + 1
			out = append(out, element{kind: nameQuote}, e, element{kind: nameQuote})
			continue
		case e.kind == nameItself:
			at = len(out)
		case e.kind == anyValue:
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

// gapAfter returns what may be between the last of elements and a value.
func gapAfter(elements []element) gap {
	if len(elements) == 0 {
		return anyGap
	}
	final := elements[len(elements)-1]
	operators := judge.Words("operator")
	switch {
	case final.kind == nameItself, final.kind == closers, final.kind == anyWord, final.kind == wordOf && !operators[judge.Heads(final.text)[0]]:
		return blankGap
	case final.kind == nameQuote, final.text == ",":
		return closeGap
	case final.kind == exactToken && operators[final.text], final.kind == wordOf:
		return assignGap
	case lex.CodeIdent.Has(lex.LastByte(final.text)):
		return blankGap
	}
	return anyGap
}

// A formIndex has the forms by what follows NAME.
type formIndex struct {
	// plain are the forms by the token behind NAME, quoted those by the token behind the quote that ends
	// NAME, closed those by the token behind all that closes around NAME.
	plain, quoted, closed byToken
}

// byToken has forms by the text of a token in small letters, by whether it is a word or a
// literal, and those that any token may follow.
type byToken struct {
	exact               map[string][]*form
	word, literal, rest []*form
}

func (x *formIndex) fill(forms []form) {
	for i := range forms {
		f := &forms[i]
		elements, to := f.after, &x.plain
		switch {
		case len(elements) > 0 && elements[0].kind == nameQuote:
			elements, to = elements[1:], &x.quoted
			if len(elements) > 0 && elements[0].kind == closers {
				elements, to = elements[1:], &x.closed
			}
		case len(elements) > 0 && elements[0].kind == closers:
			elements, to = elements[1:], &x.closed
		}
		to.add(f, elements)
	}
}

func (b *byToken) add(f *form, elements []element) {
	if b.exact == nil {
		b.exact = map[string][]*form{}
	}
	if len(elements) == 0 {
		b.rest = append(b.rest, f)
		return
	}
	switch e := elements[0]; {
	case e.quoted:
		b.literal = append(b.literal, f)
	case e.kind == exactToken:
		b.exact[e.text] = append(b.exact[e.text], f)
	case e.kind == wordOf:
		for w := range e.list {
			b.exact[w] = append(b.exact[w], f)
		}
	case e.kind == anyWord:
		b.word = append(b.word, f)
	default:
		b.rest = append(b.rest, f)
	}
}

// at appends the forms that the token t of s does not rule out.
func (b *byToken) at(out []*form, s string, t lex.Token, ok bool) []*form {
	if ok {
		const longest = 16
		switch text := s[t.Start:t.End]; {
		case t.Kind == lex.Literal:
			out = append(out, b.literal...)
		case len(text) <= longest:
			out = append(out, b.exact[strings.ToLower(text)]...)
			fallthrough
		case t.Kind == lex.Name:
			if t.Kind == lex.Name {
				out = append(out, b.word...)
			}
		}
	}
	return append(out, b.rest...)
}
