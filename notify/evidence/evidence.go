// Package evidence makes the tokens that identify our messages at a mail server or
// another service. A token is an HMAC of the delivery key (notification 6.4): only
// the holder of the key can make a message that counts as a delivery.
//
// The secret is a text with one key per line: the time from which the key signs, in
// RFC 3339, and 32 bytes in base64. The newest key whose time has come signs. A
// rotated key still identifies messages for a configured time, so that a worker
// finds what another one sent before the rotation.
package evidence

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// Config holds the keys.
type Config struct {
	// Keys that sign the tokens, one per line.
	Key secret.Value `yaml:"key" required:"the output of: criticizer keyset evidence"`
}

const (
	keyBytes = 32
	// maxKeys bounds the searches of a look-up.
	maxKeys = 8
	// rotationDelay is the time from [Rotate] until the new key signs. Every worker
	// must have the new keys before: a worker that lacks the key of a message would
	// not find the message, and would send it again.
	rotationDelay = time.Hour
	// life is how long a rotated key identifies messages.
	life = 30 * 24 * time.Hour
	// clockSkew bounds the difference between the clocks of two workers.
	clockSkew = time.Minute
)

// Keys sign and identify messages. They are safe for concurrent use, and follow
// changes of the secret.
type Keys struct {
	text   secret.Value
	parsed atomic.Pointer[[]key] // the last valid ones; never nil
}

// A key signs from a time on, until the next key does.
type key struct {
	from time.Time
	mac  []byte
}

// New returns the keys of text.
func New(text secret.Value) (*Keys, error) {
	parsed, err := parse(text)
	if err != nil {
		return nil, err
	}
	k := &Keys{text: text}
	k.parsed.Store(&parsed)
	return k, nil
}

// Generate returns a text with one key that signs from now on.
func Generate() (secret.Value, error) { return secret.New(newLine(time.Now())), nil }

// Rotate returns old with another key, which signs from one hour later on.
func Rotate(old secret.Value) (secret.Value, error) {
	if _, err := parse(old); err != nil {
		return secret.Value{}, err
	}
	rotated := secret.New(newLine(time.Now().Add(rotationDelay)) + "\n" + strings.TrimSpace(old.Reveal()))
	return rotated, Check(rotated)
}

func newLine(from time.Time) string {
	var random [keyBytes]byte
	_, _ = rand.Read(random[:]) // never fails
	return from.UTC().Format(time.RFC3339) + " " + base64.StdEncoding.EncodeToString(random[:])
}

// Check returns an error of class CONFIG_INVALID unless text holds keys.
func Check(text secret.Value) error {
	_, err := parse(text)
	return err
}

// parse returns the keys, newest first. Its errors do not quote the text.
func parse(text secret.Value) ([]key, error) {
	var keys []key
	for line := range strings.Lines(text.Reveal()) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		at, encoded, _ := strings.Cut(line, " ")
		from, errTime := time.Parse(time.RFC3339, at)
		mac, errMAC := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if errors.Join(errTime, errMAC) != nil || len(mac) != keyBytes {
			return nil, invalid("line %d is not a time in RFC 3339 and %d bytes in base64", len(keys)+1, keyBytes)
		}
		if slices.ContainsFunc(keys, func(k key) bool { return k.from.Equal(from) || bytes.Equal(k.mac, mac) }) {
			return nil, invalid("line %d repeats a time or a key", len(keys)+1)
		}
		keys = append(keys, key{from, mac})
	}
	if len(keys) == 0 || len(keys) > maxKeys {
		return nil, invalid("want 1 to %d keys", maxKeys)
	}
	slices.SortFunc(keys, func(a, b key) int { return b.from.Compare(a.from) })
	return keys, nil
}

func invalid(format string, args ...any) error {
	return failure.Errorf(failure.ConfigInvalid, "evidence key: %s: make one with: criticizer keyset evidence", fmt.Sprintf(format, args...))
}

func (k *Keys) keys() []key {
	if parsed, err := parse(k.text); err == nil {
		k.parsed.Store(&parsed)
	}
	return *k.parsed.Load()
}

// signer returns the index of the key that signs at that time. Before the first key's
// time, the first key signs.
func signer(keys []key, at time.Time) int {
	i := slices.IndexFunc(keys, func(k key) bool { return !k.from.After(at) })
	if i < 0 {
		return len(keys) - 1
	}
	return i
}

// Token returns the token of a message that is sent now.
func (k *Keys) Token(d review.DeliveryKey) string {
	keys := k.keys()
	return keys[signer(keys, time.Now())].token(d)
}

// Tokens returns the tokens that identify the message of d. The first one belongs to a
// message sent at the time given. A key that does not sign yet is included: the clock of
// another worker may be ahead. If complete is false, the key of that time was removed or
// has expired, and no look-up proves that the message does not exist.
func (k *Keys) Tokens(d review.DeliveryKey, sent time.Time) (tokens []string, complete bool) {
	keys := k.keys()
	likely := signer(keys, sent)
	tokens = []string{keys[likely].token(d)}
	for i, key := range keys {
		if i != likely && k.valid(keys, i) {
			tokens = append(tokens, key.token(d))
		}
	}
	oldest := keys[len(keys)-1].from
	return tokens, k.valid(keys, likely) && !sent.Before(oldest.Add(-clockSkew))
}

// SignFeedback returns a token for the answer of one recipient on a finding.
func (k *Keys) SignFeedback(token, recipient string) string {
	keys := k.keys()
	return token + "." + keys[signer(keys, time.Now())].feedback(token, recipient)
}

// FeedbackToken returns the token of the finding that signed was made for; ok reports
// whether it was made for the sender.
func (k *Keys) FeedbackToken(signed, sender string) (token string, ok bool) {
	token, mac, _ := strings.Cut(strings.ToLower(signed), ".")
	keys := k.keys()
	for i, key := range keys {
		if k.valid(keys, i) && hmac.Equal([]byte(mac), []byte(key.feedback(token, sender))) {
			return token, true
		}
	}
	return "", false
}

func (k key) feedback(token, recipient string) string {
	mac := hmac.New(sha256.New, k.mac)
	fmt.Fprintf(mac, "criticizer feedback\x00%s\x00%s", token, strings.ToLower(recipient))
	return hex.EncodeToString(mac.Sum(nil)[:10])
}

// valid reports whether key i still identifies messages: its successor began to sign at
// most one life ago.
func (k *Keys) valid(keys []key, i int) bool {
	return i == 0 || time.Since(keys[i-1].from) < life
}

// token returns 32 hexadecimal digits: a longer Message-ID would be folded.
func (k key) token(d review.DeliveryKey) string {
	mac := hmac.New(sha256.New, k.mac)
	fmt.Fprintf(mac, "criticizer delivery\x00%d\x00%s\x00%d", d.Changelist, strings.ToLower(d.Recipient), d.Version)
	if d.Kind != "" {
		fmt.Fprintf(mac, "\x00%s", d.Kind)
	}
	return hex.EncodeToString(mac.Sum(nil)[:16])
}
