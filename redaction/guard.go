package redaction

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/criticizer/criticizer/failure"
)

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
		if rule := p.engine.certain(s); rule != "" {
			return failure.Errorf(failure.RedactionBlocked, "check request: a string of the body holds what rule %s masks", rule)
		}
	}
}
