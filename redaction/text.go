// Package redaction keeps secrets from leaving: raw text goes in, [Text] comes
// out, and no other package can make a Text (security 9.5). The model client
// accepts nothing else.
//
// [Pipeline.Change] and [Pipeline.String] are the ways in. A text is laid out in
// views (layout.go, view.go, alternate.go: sides of a diff, lines without their
// disguise); an automaton finds in one pass the words that rules.go lists; for each
// a detector has a matcher (engine.go), in a file named for the form it knows:
// token, uri, pem, command. What has no form of its own goes by the name before it:
// names.go weighs the name, link.go and its like find the value that is tied to
// it, and judge.go decides whether that is a secret. collect.go makes of all finds
// the spans that are masked.
package redaction

import (
	"errors"
	"hash/maphash"
)

// A Text has passed the pipeline. Only this package makes one that is not
// empty, so a function that takes a Text cannot be handed raw input.
type Text struct {
	s string
	// by is the version of the pipeline that made it, and sum a keyed hash of
	// both, which [Pipeline.Verify] asks for: a Text that was put together or
	// changed behind the compiler's back has another.
	by  string
	sum uint64
}

// processSeed keys the sums of all texts of this process.
var processSeed = maphash.MakeSeed()

func (t Text) hash() uint64 {
	return maphash.String(processSeed, t.s) + 31*maphash.String(processSeed, t.by)
}

// text is what p let pass.
func (p *Pipeline) text(s string) Text {
	t := Text{s: s, by: p.version}
	t.sum = t.hash()
	return t
}

// made reports whether t is what p, or another pipeline of its version in this
// process, let pass. An empty text holds nothing.
func (p *Pipeline) made(t Text) bool {
	return t.s == "" || t.by == p.version && t.sum == t.hash()
}

// String returns the redacted text.
func (t Text) String() string { return t.s }

// MarshalJSON refuses. A struct of unexported fields would cross an activity
// boundary empty and silently; use [Pipeline.Seal].
func (t Text) MarshalJSON() ([]byte, error) {
	return nil, errors.New("redaction.Text does not travel as JSON: seal it")
}
