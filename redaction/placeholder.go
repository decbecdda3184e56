package redaction

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// placeholder is what replaces the secret: one line of ASCII.
func (s span) placeholder() string { return judge.PlaceholderHead + s.Class + ":" + s.tag + "]" }

// tagger returns the function that makes the tags of a scope. A tag is four hex
// digits of a keyed hash: enough to distinguish the secrets of one review, too
// few to recover a secret by guessing, even with the key.
func (p *Pipeline) tagger(scope string) func(value string) string {
	mac := hmac.New(sha256.New, p.tagKey)
	var before, tag string // often the same secret follows
	return func(value string) string {
		if tag == "" || value != before {
			mac.Reset()
			mac.Write([]byte(scope + "\x00" + value))
			before, tag = value, hex.EncodeToString(mac.Sum(nil))[:judge.TagLen]
		}
		return tag
	}
}

// withoutPlaceholders removes the placeholders in text from the spans: they hold no secret, and a second
// redaction has to leave them unchanged.
func (e *engine) withoutPlaceholders(text string, spans []span) (out []span) {
	if len(spans) == 0 || !strings.Contains(text, judge.PlaceholderHead) {
		return spans
	}
	begin, end := 0, 0 // of the next placeholder
	for _, s := range spans {
		for last := s.end; s.start < last; s.start = end {
			for end <= s.start && begin < len(text) {
				begin, end = e.nextPlaceholder(text, end)
			}
			s.end = min(max(begin, s.start), last)
			if strings.ContainsAny(text[s.start:s.end], lex.Digits+lex.Letters) {
				out = append(out, s)
			}
			if begin >= last {
				break
			}
		}
	}
	return out
}

// nextPlaceholder returns the range of the first placeholder from at on. If there is none, it is at the end.
func (e *engine) nextPlaceholder(text string, at int) (begin, end int) {
	for ; ; at++ {
		i := strings.Index(text[at:], judge.PlaceholderHead)
		if i < 0 {
			return len(text), len(text)
		}
		at += i
		if n := e.names.PlaceholderLen(text[at:]); n > 0 {
			return at, at + n
		}
	}
}
