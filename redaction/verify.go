package redaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/criticizer/criticizer/internal/failure"
)

// Verify blocks a change that holds a text which no pipeline of this version
// made (security 9.5.5). Only this package makes a Text, but another version may
// have made it, or it may have been changed by unsafe means.
func (p *Pipeline) Verify(c Change) (err error) {
	defer recoverBlocked(&err)
	texts := append([]Text{c.User, c.Description}, c.Jobs...)
	for _, f := range c.Files {
		texts = append(texts, f.Path, f.Type, f.FromPath, f.Diff)
		if len(f.Action) > maxAction || !allIn(string(f.Action), &actionSet) {
			return failure.Errorf(failure.RedactionBlocked, "verify changelist %d: the action on a file is not one of p4's", c.Number)
		}
	}
	return p.VerifyTexts(texts...)
}

// maxAction is more than the length of the longest action of p4, such as
// move/delete.
const maxAction = 16

// VerifyTexts blocks texts that no pipeline of this version made (security 9.5.5).
func (p *Pipeline) VerifyTexts(texts ...Text) error {
	for _, t := range texts {
		if !p.issued(t) {
			return failure.Errorf(failure.RedactionBlocked, "verify text: not made by redaction version %s: redact it again", p.version)
		}
	}
	return nil
}

// Check is the last check of a request body before it is sent (security 9.5.5).
// It blocks a body that is not one JSON value, is over the size limit, or holds
// a secret of a form that needs no context, either in the bytes as they are or
// in a decoded string. Check is no second redaction: a body made of Text passes
// unless a caller bypassed the pipeline.
func (p *Pipeline) Check(body []byte) (err error) {
	defer recoverBlocked(&err)
	if len(body) > p.maxBytes {
		return failure.Errorf(failure.RedactionBlocked, "check request: %d bytes are more than the limit of %d", len(body), p.maxBytes)
	}
	if !json.Valid(body) {
		return failure.Errorf(failure.RedactionBlocked, "check request: the body is not JSON")
	}
	if rule := p.engine.contextFreeRule(whole(string(body))); rule != "" {
		return failure.Errorf(failure.RedactionBlocked, "check request: the body holds a secret that rule %s masks", rule)
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
		if rule := p.engine.contextFreeRuleUnfolded(s); rule != "" {
			return failure.Errorf(failure.RedactionBlocked, "check request: a string of the body holds a secret that rule %s masks", rule)
		}
	}
}
