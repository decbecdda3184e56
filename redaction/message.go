package redaction

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/failure"
)

// A Message is one redacted text with what was masked in it, so that it can be
// put back into what a model made of the text. It never leaves the process: who
// needs it again redacts the raw text again, which gives the same placeholders.
type Message struct {
	Text Text
	// masked holds what each placeholder stands for, in the order of the text: a
	// secret of several lines has one placeholder and a piece for every line.
	masked map[string][]string
}

// maxScopes bounds how often placeholders are drawn anew because two secrets
// got the same: once happens to one message of many thousands.
const maxScopes = 8

// Message redacts a text as [Pipeline.String] does and keeps what it masks. key
// names the message: its placeholders differ from those of other messages, and
// no two secrets in it share one.
func (p *Pipeline) Message(key, s string) (Message, error) {
	for i := range maxScopes {
		var m Message
		pl := newPayload(fmt.Sprintf("message %s %d", key, i))
		pl.add(formText, s, &m.Text)
		if err := p.redact(pl); err != nil {
			return Message{}, err
		}
		var distinct bool
		if m.masked, distinct = pl.parts[0].masked(); distinct {
			return m, nil
		}
	}
	return Message{}, failure.Errorf(failure.RedactionBlocked, "redact message: two secrets have one placeholder")
}

// masked returns what each placeholder stands for, and whether no two secrets
// share one, nor one that the text itself holds.
func (pt *part) masked() (masked map[string][]string, distinct bool) {
	masked, values := map[string][]string{}, map[string]string{}
	for _, s := range pt.spans {
		ph := s.placeholder()
		if value, known := values[ph]; known && value != s.value || strings.Contains(pt.raw, ph) {
			return nil, false
		}
		masked[ph], values[ph] = append(masked[ph], pt.raw[s.start:s.end]), s.value
	}
	return masked, true
}

// likePlaceholder is anything a reader would take for a placeholder.
var likePlaceholder = regexp.MustCompile(`(?i)\[\s*redacted\b[^\]\n]{0,80}\]?`)

// Restore puts the secrets back into an answer about the message. The answer is
// untrusted: an error says that it lost a placeholder, holds one that was not in
// the message, or spells one otherwise. Its class is [failure.SchemaInvalid],
// and it quotes nothing.
func (m Message) Restore(answer string) (string, error) {
	own := likePlaceholder.FindAllString(m.Text.s, -1)
	found := map[string]int{}
	for _, ph := range likePlaceholder.FindAllString(answer, -1) {
		if !slices.Contains(own, ph) {
			return "", failure.Errorf(failure.SchemaInvalid, "restore an answer: it holds a placeholder that the message does not")
		}
		found[ph]++
	}
	for ph, pieces := range m.masked {
		if n := found[ph]; n == 0 || n != len(pieces) && !alike(pieces) {
			return "", failure.Errorf(failure.SchemaInvalid, "restore an answer: it lost or repeats a placeholder of the message")
		}
	}
	used := map[string]int{}
	return likePlaceholder.ReplaceAllStringFunc(answer, func(ph string) string {
		pieces := m.masked[ph]
		if len(pieces) == 0 { // the sender wrote it
			return ph
		}
		used[ph]++
		return pieces[(used[ph]-1)%len(pieces)]
	}), nil
}

// alike reports whether all pieces are the same.
func alike(pieces []string) bool { return len(slices.Compact(slices.Clone(pieces))) == 1 }
