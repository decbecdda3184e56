package redaction

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
)

// A span is a range of bytes that holds a secret, or a line of one.
type span struct {
	start, end int
	class      string
	rule       string
	// tag is the same for the same secret within one payload.
	tag string
}

// placeholder is what stands in the place of the secret: ASCII, of one line.
func (s span) placeholder() string { return "[REDACTED:" + s.class + ":" + s.tag + "]" }

// tag is four hex digits of a keyed hash: enough to tell secrets of one review
// apart, too few to find one again, even for who has the key.
func (p *Pipeline) tag(scope, value string) string {
	mac := hmac.New(sha256.New, p.tagKey)
	mac.Write([]byte(scope))
	mac.Write([]byte{0})
	mac.Write([]byte(value))
	return hex.EncodeToString(mac.Sum(nil)[:2])
}
