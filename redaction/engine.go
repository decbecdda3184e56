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

// scan reads a text, whose words are known, by its sides: each as it is and unfolded.
func (e *engine) scan(sides []side, known []lex.Hit, l *lex.Language) (r scanned) {
	for _, s := range sides {
		var of scanned
		for i, v := range viewsOf(s.text) {
			same, sections, isWhole := s.shown, s.sections, !s.partial
			if i > 0 {
				same, sections, isWhole = nil, nil, false
			}
			in := e.detect(v.text, e.hits(v.text, same, known), l, isWhole, sections)
			of.spans = v.spans(of.spans, s.text, in.Found)
			of.left = v.spans(of.left, s.text, in.Left)
			of.hidden = v.spans(of.hidden, s.text, in.Open)
		}
		r.spans = append(r.spans, s.project(e.withoutPlaceholders(s.text, merge(of.spans)))...)
		r.left = append(r.left, s.project(merge(of.left))...)
		r.hidden = append(r.hidden, s.project(merge(of.hidden))...)
	}
	return scanned{merge(r.spans), merge(r.left), merge(r.hidden)}
}

// detect finds the secrets of a text, in which hits are the words of the rules, by their names and by their format.
func (e *engine) detect(text string, hits []lex.Hit, l *lex.Language, isWhole bool, sections []int) read.Result {
	names := make([]lex.Hit, 0, len(hits))
	for _, h := range hits {
		if h.Kind != token.Word {
			names = append(names, h)
		}
	}
	of := e.read.Read(text, l, names, isWhole)
	found, left := e.tokens.Scan(text, hits, sections)
	of.Found, of.Left = append(of.Found, withoutNames(text, found, l)...), append(of.Left, left...)
	return of
}

// hits returns the words of the rules in a text, which has none across a line end. Those in lines that another text
// has, too, are those of that text, whose words are known.
func (e *engine) hits(text string, same []shown, known []lex.Hit) (out []lex.Hit) {
	at := 0
	search := func(end int) {
		e.words.Each(text[at:end], func(w *lex.Word, begin, end int) {
			out = append(out, lex.Hit{Begin: at + begin, End: at + end, Index: w.Index, Kind: w.Kind})
		})
	}
	for _, r := range same {
		search(r.from)
		at = r.to
		for ; len(known) > 0 && known[0].Begin < r.at+r.to-r.from; known = known[1:] {
			if h := known[0]; h.Begin >= r.at && h.End <= r.at+r.to-r.from {
				h.Begin, h.End = h.Begin-r.at+r.from, h.End-r.at+r.from
				out = append(out, h)
			}
		}
	}
	search(len(text))
	return out
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
		rule = cmp.Or(rule, e.tokens.ContextFree(v.text, e.hits(v.text, nil, nil)))
	}
	return rule
}
