// Package redaction replaces secrets by placeholders. Raw text goes in and
// [Text] comes out. Only this package can make a Text, and the model client
// accepts nothing else (security 9.5).
//
// [Pipeline.Change] and [Pipeline.String] are the entry points. A text is read
// in views: the sides of a diff (diff.go) and lines without escapes or invisible
// characters (unfold.go). For each view, an Aho-Corasick automaton finds the
// words of all rules in one pass, and the matcher of each kind of rule looks for a
// secret near its word. The rules and their examples are the files of rules/,
// which ruleset.go reads:
//
//   - token rules describe tokens by their shape (token.go, longrun.go);
//   - name rules rate an identifier such as db_password (names.go). Form rules
//     describe the places of a value beside it as the text looks (form.go,
//     formmatch.go); they read lexemes (lex.go). value.go and literal.go read the
//     value, and classify.go decides whether it is a secret;
//   - call and command rules name functions and programs that take a secret
//     (table.go, command.go).
//
// uri.go, key.go, block.go and table.go read structures that no
// line describes. span.go merges the detections of all views into the spans that
// are masked.
package redaction

import (
	"errors"
	"hash/maphash"
)

// A Text has passed the pipeline. Other packages can only make the empty Text,
// so a function that takes a Text cannot be given raw input.
type Text struct {
	s string
	// by is the version of the pipeline that made the Text. sum is a keyed hash
	// of both, which [Pipeline.Verify] checks: it detects a Text that was made or
	// changed by unsafe means.
	by  string
	sum uint64
}

// processSeed keys the sums of all texts of this process.
var processSeed = maphash.MakeSeed()

func (t Text) hash() uint64 {
	return maphash.String(processSeed, t.s) + 31*maphash.String(processSeed, t.by)
}

// text marks s as redacted by p.
func (p *Pipeline) text(s string) Text {
	t := Text{s: s, by: p.version}
	t.sum = t.hash()
	return t
}

// issued reports whether t was made by a pipeline of p's version in this
// process. The empty Text always passes.
func (p *Pipeline) issued(t Text) bool {
	return t.s == "" || t.by == p.version && t.sum == t.hash()
}

// String returns the redacted text.
func (t Text) String() string { return t.s }

// MarshalJSON returns an error: a struct of unexported fields would be encoded
// as an empty object, silently. Use [Pipeline.Seal].
func (t Text) MarshalJSON() ([]byte, error) {
	return nil, errors.New("redaction.Text cannot be encoded as JSON: seal it")
}
