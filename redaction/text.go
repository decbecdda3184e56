// Package redaction replaces secrets by placeholders. Raw text goes in and
// [Text] comes out. Only this package can make a Text, and the model client
// accepts nothing else (security 9.5).
//
// [Pipeline.Change] and [Pipeline.String] are the entry points, and payload.go is the spine: what is sent
// together is read until nothing more is found, and a secret of one text is masked in all (known.go).
// engine.go reads one text: its sides if it is a diff (diff.go), each as it is and without escapes or
// invisible characters (unfold.go). In each of them package read finds what is bound to the name of a
// secret, and package token what needs no name; span.go maps it back to the text, and placeholder.go
// replaces it. rules.go parses their rules. change.go redacts and seals a change, hidden.go finds the lines
// that show less than a reviewer has to see, and secrets.go the certain secrets that a change adds.
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
	if s == "" {
		return Text{} // always passes
	}
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
