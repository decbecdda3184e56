package redaction

import (
	"errors"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"github.com/criticizer/criticizer/redaction/internal/token"
)

// engineVersion changes when the code masks something else. Data files are hashed.
const engineVersion = "11"

// An engine finds secrets in one text. It holds the rules and no state.
type engine struct {
	*ruleset
	// examples has the first example of each rule.
	examples map[string]string
}

// newEngine returns the engine with the built-in rules and those of cfg, whose
// examples it proves. A test proves the examples of the built-in rules.
func newEngine(cfg Config) (*engine, error) {
	rules, err := builtinRules()
	if err != nil {
		return nil, err
	}
	builtin := len(rules.rules)
	if err := rules.parse("rules", cfg.Rules); err != nil {
		return nil, err
	}
	own := slices.Clone(rules.rules[builtin:])
	rules.dropOff()
	policy := token.Policy{Emails: cfg.Emails, InternalIPs: cfg.InternalIPs}
	for _, h := range cfg.HostSuffixes {
		h = strings.ToLower(strings.TrimLeft(h, "*."))
		if h == "" {
			return nil, errors.New("internal host suffix is empty")
		}
		policy.HostSuffixes = append(policy.HostSuffixes, h)
	}
	rules.names.Index()
	rules.tokens.Index(policy)
	rules.read.Index()
	e := &engine{ruleset: rules, examples: map[string]string{}}
	for _, r := range slices.Backward(rules.rules) {
		if len(r.hits) > 0 {
			e.examples[r.name] = r.hits[0]
		}
	}
	return e, e.prove(own)
}

// A scanned text is a text and what is to be masked in it.
type scanned struct {
	text string
	// spans are sorted, disjoint, each within a line. left are what a rule matched and the judge left.
	spans, left []span
	// hidden are containers of secrets without an end.
	hidden []span
}

// scan reads raw, the text of a file or one that has no name. known is set if raw is a diff of a file whose
// whole text was read.
func (e *engine) scan(raw string, f form, file string, known bool) scanned {
	l := lex.Of(file)
	found, left, hidden := collector{raw: raw}, collector{raw: raw}, collector{raw: raw}
	for _, v := range views(raw, f) {
		for ; v != nil; v = unfold(v) {
			read := e.read.Read(v.text, l, v.below == nil && v.sections == nil)
			sections := v.sections
			if known {
				sections = nil // the whole text is read: a hunk does not begin within a key that is not known
			}
			tokens, none := e.tokens.Scan(v.text, sections)
			found.take(v, append(read.Found, withoutNames(v.text, tokens, l)...))
			left.take(v, append(read.Left, none...))
			hidden.take(v, read.Open)
			if v.below != nil {
				break
			}
		}
	}
	return scanned{text: raw, spans: e.names.withoutPlaceholders(raw, found.finish()), left: left.finish(), hidden: hidden.finish()}
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
func (e *engine) contextFreeRule(s string) string {
	if rule := e.tokens.ContextFree(s); rule != "" {
		return rule
	}
	if v := unfold(whole(s)); v != nil {
		return e.tokens.ContextFree(v.text)
	}
	return ""
}
