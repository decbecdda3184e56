package redaction

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/redaction/internal/read"
	"github.com/criticizer/criticizer/redaction/internal/token"
)

// engineVersion changes when the code masks something else. Data files are hashed.
const engineVersion = "16"

// An engine finds secrets in one text. It holds the parsed rules of all kinds and no state.
type engine struct {
	rules  []rule
	names  *judge.Names
	tokens token.Rules
	read   read.Rules
	words  *lex.Words // of the last two
	// off has the names of the rules that are switched off.
	off map[string]bool
	// examples has the first example of each rule.
	examples map[string]string
}

// newEngine returns the engine with the built-in rules and those of cfg, whose
// examples it proves. A test proves the examples of the built-in rules.
func newEngine(cfg Config) (*engine, error) {
	e := &engine{names: judge.NewNames(), off: map[string]bool{}, examples: map[string]string{}}
	e.tokens.Names, e.read.Names = e.names, e.names
	if err := e.parse(builtinRules); err != nil {
		return nil, err
	}
	builtin := len(e.rules)
	if err := e.parse(cfg.Rules); err != nil {
		return nil, err
	}
	own := slices.Clone(e.rules[builtin:])
	off := func(name string) bool { return e.off[name] }
	e.rules = slices.DeleteFunc(e.rules, func(r rule) bool { return off(r.name) })
	e.names.Drop(off)
	e.tokens.Drop(off)
	e.read.Drop(off)
	policy := token.Policy{Emails: cfg.Emails, InternalIPs: cfg.InternalIPs}
	for _, h := range cfg.HostSuffixes {
		h = strings.ToLower(strings.TrimLeft(h, "*."))
		if h == "" {
			return nil, errors.New("internal host suffix is empty")
		}
		policy.HostSuffixes = append(policy.HostSuffixes, h)
	}
	e.names.Index()
	e.words = lex.NewWords(append(e.read.Index(), e.tokens.Index(policy)...))
	for _, r := range slices.Backward(e.rules) {
		if len(r.hits) > 0 {
			e.examples[r.name] = r.hits[0]
		}
	}
	return e, e.prove(own)
}

// A scanned is what was found in a text.
type scanned struct {
	// spans are to be masked: sorted, disjoint, each within a line. left are what a rule matched and the judge left.
	spans, left []span
	// hidden are containers of secrets without an end.
	hidden []span
}

// scan reads a text by its sides.
func (e *engine) scan(sides []side, l *lex.Language) (r scanned) {
	for _, s := range sides {
		of := e.scanSide(s, l)
		r.spans = append(r.spans, s.project(of.spans)...)
		r.left = append(r.left, s.project(of.left)...)
		r.hidden = append(r.hidden, s.project(of.hidden)...)
	}
	return scanned{merge(r.spans), merge(r.left), merge(r.hidden)}
}

// scanSide reads a side, as it is and unfolded.
func (e *engine) scanSide(s side, l *lex.Language) (r scanned) {
	for i, v := range viewsOf(s.text) {
		sections := s.sections
		if i > 0 {
			sections = nil
		}
		of := e.detect(v.text, l, i == 0 && !s.partial, sections)
		r.spans = v.spans(r.spans, s.text, of.Found)
		r.left = v.spans(r.left, s.text, of.Left)
		r.hidden = v.spans(r.hidden, s.text, of.Open)
	}
	return scanned{e.withoutPlaceholders(s.text, merge(r.spans)), merge(r.left), merge(r.hidden)}
}

// detect finds the secrets of a text by their names and by their format.
func (e *engine) detect(text string, l *lex.Language, isWhole bool, sections []int) read.Result {
	names, tokens := e.hits(text)
	of := e.read.Read(text, l, names, isWhole)
	found, left := e.tokens.Scan(text, tokens, sections)
	of.Found, of.Left = append(of.Found, withoutNames(text, found, l)...), append(of.Left, left...)
	return of
}

// hits returns the words of the rules in a text: those of names, and those of tokens.
func (e *engine) hits(text string) (names, tokens []lex.Hit) {
	e.words.Each(text, func(w *lex.Word, begin, end int) {
		if h := (lex.Hit{Begin: begin, End: end, Index: w.Index, Kind: w.Kind}); h.Kind == token.Word {
			tokens = append(tokens, h)
		} else {
			names = append(names, h)
		}
	})
	return names, tokens
}

// withoutNames leaves out names of code that hold the prefix of a token, or look random.
func withoutNames(text string, spans []judge.Span, l *lex.Language) []judge.Span {
	if l.Kind != lex.Code {
		return spans
	}
	return slices.DeleteFunc(spans, func(s judge.Span) bool {
		before := lex.ByteAt(text, s.Start-1)
		if s.Rule == token.Generic {
			return !lex.QuoteSet.Has(before)
		}
		return before == '_' && judge.IsIdentifier(text[s.Start:s.End]) && judge.IsWordy(text[s.Start:s.End])
	})
}

// contextFreeRule returns the rule that masks something in s, as it is or unfolded,
// without context, or "".
func (e *engine) contextFreeRule(s string) (rule string) {
	for _, v := range viewsOf(s) {
		_, tokens := e.hits(v.text)
		rule = cmp.Or(rule, e.tokens.ContextFree(v.text, tokens))
	}
	return rule
}
