package redaction

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
)

// A Message is one redacted text and the secrets masked in it, so that they can
// be put back into an answer that a model made from the text. It never leaves
// the process: redacting the raw text again gives the same placeholders.
type Message struct {
	Text Text
	// masked holds the secret of each placeholder, in the order of the text. A
	// secret of several lines has one placeholder and a piece for every line.
	masked map[string][]string
}

// Message redacts a text as [Pipeline.String] does and keeps the secrets. key
// names the message: its placeholders differ from those of other messages, and
// no two of its secrets share one.
func (p *Pipeline) Message(key, s string) (Message, error) {
	const maxDraws = 8 // one message of many thousands needs a second draw
draw:
	for i := range maxDraws {
		m := Message{masked: map[string][]string{}}
		pl := &payload{Pipeline: p, scope: fmt.Sprintf("message %s %d", key, i)}
		pt := pl.add(s, &m.Text)
		if err := pl.redact(); err != nil {
			return Message{}, err
		}
		values := map[string]string{}
		for _, s := range pt.spans {
			ph := s.placeholder()
			if value, known := values[ph]; known && value != s.value || strings.Contains(pt.raw, ph) {
				continue draw
			}
			values[ph], m.masked[ph] = s.value, append(m.masked[ph], pt.raw[s.start:s.end])
		}
		return m, nil
	}
	return Message{}, failure.Errorf(failure.RedactionBlocked, "redact message: two secrets have one placeholder")
}

// likePlaceholder matches everything that a reader would take for a placeholder.
var likePlaceholder = regexp.MustCompile(`(?i)\[\s*redacted\b[^\]\n]{0,80}\]?`)

// checkPlaceholders returns an error if an answer about t holds a placeholder that t does not have.
func checkPlaceholders(t Text, answer string) error {
	own := likePlaceholder.FindAllString(t.s, -1)
	for _, ph := range likePlaceholder.FindAllString(answer, -1) {
		if !slices.Contains(own, ph) {
			return failure.Errorf(failure.SchemaInvalid, "read answer: it holds a placeholder that the message does not have")
		}
	}
	return nil
}

// Restore puts the secrets back into an answer about the message. The answer is untrusted: Restore returns
// an error if the answer lost a placeholder, changed one, holds one that the message does not have, or
// lost or repeats a line of a secret. The error has class [failure.SchemaInvalid] and quotes nothing.
func (m Message) Restore(answer string) (string, error) {
	if err := checkPlaceholders(m.Text, answer); err != nil {
		return "", err
	}
	used := map[string]int{}
	restored := likePlaceholder.ReplaceAllStringFunc(answer, func(ph string) string {
		pieces := m.masked[ph]
		if len(pieces) == 0 { // part of the raw text
			return ph
		}
		used[ph]++
		return pieces[(used[ph]-1)%len(pieces)]
	})
	for ph, pieces := range m.masked {
		if n := used[ph]; n == 0 || n != len(pieces) && len(slices.Compact(slices.Clone(pieces))) > 1 {
			return "", failure.Errorf(failure.SchemaInvalid, "restore answer: it lost a placeholder, or lost or repeats a line of a secret")
		}
	}
	return restored, nil
}

// VerifyAnswer returns an error of class [failure.SchemaInvalid], which quotes nothing, if a model's answer
// about t holds a placeholder that t does not have, or a secret that t does not show.
func (p *Pipeline) VerifyAnswer(t Text, answer string) error {
	if err := checkPlaceholders(t, answer); err != nil {
		return err
	}
	_, masked, _, err := p.Explain(answer, "", false)
	if err != nil {
		return err
	}
	answer = strings.ToValidUTF8(answer, "\uFFFD")
	for _, m := range masked {
		if !strings.Contains(t.s, answer[m.Start:m.End]) {
			return failure.Errorf(failure.SchemaInvalid, "verify answer: it holds a secret that the message does not show")
		}
	}
	return nil
}
