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
	all     *lex.Words
}

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

// Index has to be called after the last rule was added.
func (r *Rules) Index(p Policy) {
	var words []lex.Word
	add := func(read func(c *scan, begin, end int), contextFree bool, texts ...string) {
		for _, w := range texts {
			words = append(words, lex.Word{Text: strings.ToLower(w), Index: len(r.readers)})
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
	r.all = lex.NewWords(words)
}

// Drop removes the rules that off reports. It has to be called before [Rules.Index].
func (r *Rules) Drop(off func(rule string) bool) {
	r.tokens = slices.DeleteFunc(r.tokens, func(t rule) bool { return off(t.name) })
}

// Scan returns the secrets of s, in any order, and what a rule matched and a predicate left.
// sections are where hunks begin in s: lines of the file are missing before each.
func (r *Rules) Scan(s string, sections []int) (found, left []judge.Span) {
	c := r.read(s, false)
	c.keyBodies(sections)
	c.longRuns()
	return c.found, c.left
}

// ContextFree returns the rule that finds something in s that a request must never hold, or "".
func (r *Rules) ContextFree(s string) string {
	if c := r.read(s, true); len(c.found) > 0 {
		return c.found[0].Rule
	}
	return ""
}

// read reads s at all words, or at those of readers without context up to the first secret.
func (r *Rules) read(s string, contextFree bool) *scan {
	c := &scan{Rules: r, s: s, contextFree: contextFree, runEnds: make([]int, len(r.tokens))}
	r.all.Each(s, func(w *lex.Word, begin, end int) {
		reader := &r.readers[w.Index]
		if begin >= c.placeholderEnd && (!contextFree || reader.contextFree && len(c.found) == 0) {
			reader.read(c, begin, end)
		}
	})
	return c
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
