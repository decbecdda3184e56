package redaction

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/redaction/internal/judge"
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
	for i := range maxDraws {
		var m Message
		pl := &payload{scope: fmt.Sprintf("message %s %d", key, i)}
		pl.add(formText, s, &m.Text)
		if err := p.redact(pl); err != nil {
			return Message{}, err
		}
		var unique bool
		if m.masked, unique = pl.parts[0].masked(); unique {
			return m, nil
		}
	}
	return Message{}, failure.Errorf(failure.RedactionBlocked, "redact message: two secrets have one placeholder")
}

// masked returns the secret of each placeholder. unique is set if no two secrets
// share a placeholder and the raw text holds none of them.
func (pt *part) masked() (masked map[string][]string, unique bool) {
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

// likePlaceholder matches everything that a reader would take for a placeholder.
var likePlaceholder = regexp.MustCompile(`(?i)\[\s*redacted\b[^\]\n]{0,80}\]?`)

// Restore puts the secrets back into an answer about the message. The answer is
// untrusted: Restore returns an error if the answer lost a placeholder, changed
// one, or holds one that the message does not have. The error has class
// [failure.SchemaInvalid] and quotes nothing.
func (m Message) Restore(answer string) (string, error) {
	if err := checkPlaceholders(m.Text.s, answer); err != nil {
		return "", err
	}
	for ph, pieces := range m.masked {
		if strings.Count(answer, ph) != len(pieces) && len(slices.Compact(slices.Clone(pieces))) > 1 {
			return "", failure.Errorf(failure.SchemaInvalid, "restore answer: it lost or repeats a line of a secret")
		}
	}
	used := map[string]int{}
	return likePlaceholder.ReplaceAllStringFunc(answer, func(ph string) string {
		pieces := m.masked[ph]
		if len(pieces) == 0 { // part of the raw text
			return ph
		}
		used[ph]++
		return pieces[(used[ph]-1)%len(pieces)]
	}), nil
}

// checkPlaceholders returns an error unless the answer has every placeholder of
// text and no other. It may leave out what only looks like a placeholder.
func checkPlaceholders(text, answer string) error {
	own, found := likePlaceholder.FindAllString(text, -1), likePlaceholder.FindAllString(answer, -1)
	for _, ph := range own {
		if judge.ShapeLen(ph) == len(ph) && !slices.Contains(found, ph) {
			return failure.Errorf(failure.SchemaInvalid, "read answer: it lost a placeholder of the message")
		}
	}
	for _, ph := range found {
		if !slices.Contains(own, ph) {
			return failure.Errorf(failure.SchemaInvalid, "read answer: it holds a placeholder that the message does not have")
		}
	}
	return nil
}

// VerifyAnswer returns an error if a model's answer about t lost one of t's
// placeholders, has another one, or holds a secret that t does not show
// unmasked. The error has class [failure.SchemaInvalid] and quotes nothing.
func (p *Pipeline) VerifyAnswer(t Text, answer string) error {
	if err := checkPlaceholders(t.s, answer); err != nil {
		return err
	}
	m, err := p.Message("answer", answer)
	if err != nil {
		return err
	}
	for _, pieces := range m.masked {
		for _, piece := range pieces {
			if !strings.Contains(t.s, piece) {
				return failure.Errorf(failure.SchemaInvalid, "verify answer: it holds a secret that the message does not show")
			}
		}
	}
	return nil
}
