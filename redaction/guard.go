package redaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/criticizer/criticizer/internal/failure"
)

// Verify blocks a change that holds anything but what a pipeline of this version
// let pass (security 9.5.5). Nobody else can make a Text, but one that another
// policy or release made can be handed on, or be changed by unsafe means.
func (p *Pipeline) Verify(c Change) (err error) {
	defer recoverBlocked(&err)
	texts := append([]Text{c.User, c.Description}, c.Jobs...)
	for _, f := range c.Files {
		texts = append(texts, f.Path, f.Type, f.FromPath, f.Diff)
		if len(f.Action) > maxAction || !allIn(string(f.Action), &actionSet) {
			return failure.Errorf(failure.RedactionBlocked, "vouch for changelist %d: the action on a file is none of p4's", c.Number)
		}
	}
	for _, t := range texts {
		if !p.made(t) {
			return failure.Errorf(failure.RedactionBlocked, "vouch for changelist %d: this is not what redaction version %s made of it: redact it again", c.Number, p.version)
		}
	}
	return nil
}

// actionSet is what p4's names of actions are made of, such as move/delete, and
// maxAction the length of the longest with some to spare.
var actionSet = setOf(lowers, "/")

const maxAction = 16

// Check is the last look at a request body before it is sent (security 9.5.5):
// it blocks a body that is not one JSON value, is over the size limit, or
// holds a secret of a form that is never anything else, be it in the bytes as
// they are or in a string after decoding. It is no second redaction: a body
// made of Text passes unless something went around the pipeline.
func (p *Pipeline) Check(body []byte) (err error) {
	defer recoverBlocked(&err)
	if len(body) > p.maxBytes {
		return failure.Errorf(failure.RedactionBlocked, "check request: %d bytes are more than the limit of %d", len(body), p.maxBytes)
	}
	if !json.Valid(body) {
		return failure.Errorf(failure.RedactionBlocked, "check request: the body is not JSON")
	}
	if rule := p.engine.certain(string(body)); rule != "" {
		return failure.Errorf(failure.RedactionBlocked, "check request: the body holds what rule %s masks", rule)
	}
	d := json.NewDecoder(bytes.NewReader(body))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return failure.Errorf(failure.RedactionBlocked, "check request: the body cannot be decoded")
		}
		s, ok := token.(string)
		if !ok {
			continue
		}
		if rule := p.engine.certainString(s); rule != "" {
			return failure.Errorf(failure.RedactionBlocked, "check request: a string of the body holds what rule %s masks", rule)
		}
	}
}
