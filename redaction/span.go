package redaction

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// A span is a range of bytes that holds a secret, or a line of one.
type span struct {
	start, end int
	class      string
	rule       string
	// value is the secret as it was read, without disguise.
	value string
	// tag is the same for the same secret within one payload.
	tag string
}

const (
	placeholderHead = "[REDACTED:"
	tagLen          = 4
	maxPlaceholder  = len(placeholderHead) + 32 + 1 + tagLen + 1
)

// placeholder is what stands in the place of the secret: ASCII, of one line.
func (s span) placeholder() string { return placeholderHead + s.class + ":" + s.tag + "]" }

// placeholderLen is the length of the placeholder that s begins with, or 0.
// Only the exact form counts: text in its likeness could hide a secret.
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

// tagger returns what makes the tags of a scope: four hex digits of a keyed
// hash, enough to tell secrets of one review apart, too few to find one again,
// even for who has the key.
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
