// Package token finds secrets that need no context: tokens of a known format by their prefix
// and length, private keys, user and password of URIs, credentials behind the name of an
// authorization scheme, and generic random tokens. It reads the raw text and does not depend on the language.
//
// [Rules.Index] lists what is read at which words, [Rules.Scan] is the spine. rule.go has the rules of
// tokens.rules, run.go what has no prefix, uri.go URIs and lines of password files, key.go private keys,
// scheme.go credentials.
package token

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// Rules are the token rules and what the policy masks.
type Rules struct {
	Names  *judge.Names
	tokens []rule
	// runs are the rules without an anchor.
	runs    []*rule
	readers []reader // by the index of their words
}

// Word is the kind of the words of the rules.
const Word uint8 = 1 << 7

// A reader looks for secrets at the word s[begin:end].
type reader struct {
	read func(c *scan, begin, end int)
	// contextFree readers find what a request must never hold.
	contextFree bool
}

// A Policy masks what is not a secret by itself (security 9.5.2).
type Policy struct {
	Emails, InternalIPs bool
	HostSuffixes        []string
}

// Index returns the words at which the rules are tried. It has to be called after the last rule was added.
func (r *Rules) Index(p Policy) (words []lex.Word) {
	add := func(read func(c *scan, begin, end int), contextFree bool, texts ...string) {
		for _, w := range texts {
			words = append(words, lex.Word{Text: strings.ToLower(w), Index: len(r.readers), Kind: Word})
		}
		r.readers = append(r.readers, reader{read, contextFree})
	}
	add((*scan).placeholder, true, judge.PlaceholderHead)
	for i := range r.tokens {
		t := &r.tokens[i]
		if t.anchor < 0 {
			r.runs = append(r.runs, t)
			continue
		}
		add(func(c *scan, begin, end int) { c.token(i, begin, end) }, t.contextFree(), t.anchorText())
	}
	add(uri, true, "://")
	add(pem, true, "-----begin", "---- begin", "----begin", "----end")
	add(putty, false, "private-lines:")
	add(keyMembers, false, "kty", "<rsakeyvalue>")
	add(userinfo, false, "@")
	add(dsn, false, "@tcp(", "@unix(", "@udp(")
	add(oracle, false, "jdbc:oracle:thin:", "jdbc:oracle:oci:", "sqlplus ", "connect ", "conn ", "userid=")
	add(pgpass, false, ":5432:", ":5433:", ":5434:", ":6432:", ":*:")
	add(bearer, false, "bearer", "ssws")
	add(basic, false, "basic", "auth plain")
	add(login, false, "auth login", "334 ugfzc3dvcmq6", "334 cgfzc3dvcmq6", "334 vxnlcm5hbwu6")
	if p.Emails {
		add(email, false, "@")
	}
	if p.InternalIPs {
		add(internalIP, false, privateNets...)
	}
	add(host, false, p.HostSuffixes...)
	return words
}

// Drop removes the rules that off reports. It has to be called before [Rules.Index].
func (r *Rules) Drop(off func(rule string) bool) {
	r.tokens = slices.DeleteFunc(r.tokens, func(t rule) bool { return off(t.name) })
}

// Scan returns the secrets of s, in any order, and what a rule matched and a predicate left. hits are the words of the
// rules in s, sections are where hunks begin in s: lines of the file are missing before each.
func (r *Rules) Scan(s string, hits []lex.Hit, sections []int) (found, left []judge.Span) {
	c := &scan{Rules: r, s: s, runEnds: make([]int, len(r.tokens))}
	for _, h := range hits {
		if h.Kind == Word && h.Begin >= c.placeholderEnd {
			r.readers[h.Index].read(c, h.Begin, h.End)
		}
	}
	c.keyBodies(sections)
	c.longRuns()
	return c.found, c.left
}

// ContextFree returns the rule that finds something in s that a request must never hold, or "".
func (r *Rules) ContextFree(s string, hits []lex.Hit) string {
	c := &scan{Rules: r, s: s, contextFree: true, runEnds: make([]int, len(r.tokens))}
	for _, h := range hits {
		if h.Kind != Word {
			continue
		}
		if reader := &r.readers[h.Index]; reader.contextFree && h.Begin >= c.placeholderEnd {
			if reader.read(c, h.Begin, h.End); len(c.found) > 0 {
				return c.found[0].Rule
			}
		}
	}
	return ""
}

// A scan is the state of one pass over a text.
type scan struct {
	*Rules
	s           string
	contextFree bool
	found, left []judge.Span
	// The ends of the last placeholder, key, URI, document and credentials that were read.
	placeholderEnd, keyEnd, uriEnd, documentEnd, schemeEnd int
	// runEnds are the ends of the last runs of the rules: a token that begins in one is not read again.
	runEnds []int
}

// report records s[start:end] as a secret.
func (c *scan) report(class, rule, why string, start, end int) {
	if start < end {
		c.found = append(c.found, judge.Span{Start: start, End: end, Reason: judge.Reason{Class: class, Rule: rule, Why: why}})
	}
}

// placeholder skips the placeholder at begin.
func (c *scan) placeholder(begin, _ int) {
	c.placeholderEnd = begin + c.Names.PlaceholderLen(c.s[begin:])
}
