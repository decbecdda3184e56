// Package redaction keeps secrets from leaving: raw text goes in, [Text] comes
// out, and no other package can make a Text (security 9.5). The model client
// accepts nothing else.
package redaction

import "errors"

// A Text has passed the pipeline. Only this package makes one that is not
// empty, so a function that takes a Text cannot be handed raw input.
type Text struct {
	s string
	// by is the version of the pipeline that made it, which [Pipeline.Vouch] asks for.
	by string
}

// String returns the redacted text.
func (t Text) String() string { return t.s }

// MarshalJSON refuses. A struct of unexported fields would cross an activity
// boundary empty and silently; use [Pipeline.Seal].
func (t Text) MarshalJSON() ([]byte, error) {
	return nil, errors.New("redaction.Text does not travel as JSON: seal it")
}
