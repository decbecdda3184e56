package redaction

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A span is a range of bytes that holds a secret, or one line of it.
type span struct {
	start, end int
	class      string
	rule       string
	// value is the secret as it was read: unfolded.
	value string
	// tag is the same for the same secret within one payload.
	tag string
}

const (
	placeholderHead = "[REDACTED:"
	tagLen          = 4
	maxPlaceholder  = len(placeholderHead) + 32 + 1 + tagLen + 1
)

// placeholder is what replaces the secret: one line of ASCII.
func (s span) placeholder() string { return placeholderHead + s.class + ":" + s.tag + "]" }

// placeholderLen returns the length of the placeholder that s begins with, or 0.
// Only the exact form counts: something similar could hide a secret.
func placeholderLen(s string) int {
	rest, ok := strings.CutPrefix(s, placeholderHead)
	if !ok {
		return 0
	}
	class, rest, ok := strings.Cut(rest[:min(len(rest), 48)], ":")
	if !ok || !validClass(class) || len(rest) <= tagLen || rest[tagLen] != ']' || !allIn(rest[:tagLen], &lowerHex) {
		return 0
	}
	return len(placeholderHead) + len(class) + 1 + tagLen + 1
}

// tagger returns the function that makes the tags of a scope. A tag is four hex
// digits of a keyed hash: enough to distinguish the secrets of one review, too
// few to recover a secret by guessing, even with the key.
func (p *Pipeline) tagger(scope string) func(value string) string {
	mac := hmac.New(sha256.New, p.tagKey)
	var before, tag string // often the same secret follows
	return func(value string) string {
		if tag != "" && value == before {
			return tag
		}
		mac.Reset()
		mac.Write([]byte(scope))
		mac.Write([]byte{0})
		mac.Write([]byte(value))
		var sum [sha256.Size]byte
		before, tag = value, hex.EncodeToString(mac.Sum(sum[:0]))[:tagLen]
		return tag
	}
}

// render replaces spans of raw by their placeholders.
func render(raw string, spans []span) string {
	if len(spans) == 0 {
		return raw
	}
	var b strings.Builder
	b.Grow(len(raw))
	at := 0
	for _, s := range spans {
		b.WriteString(raw[at:s.start])
		b.WriteString(s.placeholder())
		at = s.end
	}
	b.WriteString(raw[at:])
	return b.String()
}
