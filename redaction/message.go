package redaction

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/criticizer/criticizer/internal/failure"
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
var likePlaceholder = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\[\s*redacted\b[^\]\n]{0,80}\]?`)
})

// Restore puts the secrets back into an answer about the message. The answer is
// untrusted: an error says that it lost a placeholder, holds one that was not in
// the message, or spells one otherwise. Its class is [failure.SchemaInvalid],
// and it quotes nothing.
func (m Message) Restore(answer string) (string, error) {
	if err := sameLikes(m.Text.s, answer); err != nil {
		return "", err
	}
	for ph, pieces := range m.masked {
		if strings.Count(answer, ph) != len(pieces) && !alike(pieces) {
			return "", failure.Errorf(failure.SchemaInvalid, "restore an answer: it lost or repeats a line of a secret")
		}
	}
	used := map[string]int{}
	return likePlaceholder().ReplaceAllStringFunc(answer, func(ph string) string {
		pieces := m.masked[ph]
		if len(pieces) == 0 { // the sender wrote it
			return ph
		}
		used[ph]++
		return pieces[(used[ph]-1)%len(pieces)]
	}), nil
}

// sameLikes refuses an answer without every placeholder of text, or with one
// that text does not have. What the sender wrote in the likeness of one counts,
// but may be left out.
func sameLikes(text, answer string) error {
	own, found := likePlaceholder().FindAllString(text, -1), likePlaceholder().FindAllString(answer, -1)
	for _, ph := range own {
		if placeholderLen(ph) == len(ph) && !slices.Contains(found, ph) {
			return failure.Errorf(failure.SchemaInvalid, "read an answer: it lost a placeholder of the message")
		}
	}
	for _, ph := range found {
		if !slices.Contains(own, ph) {
			return failure.Errorf(failure.SchemaInvalid, "read an answer: it holds a placeholder that the message does not")
		}
	}
	return nil
}

// alike reports whether all pieces are the same.
func alike(pieces []string) bool { return len(slices.Compact(slices.Clone(pieces))) == 1 }

// VerifyAnswer refuses an answer about t, which a model wrote, that lost one of its
// placeholders, holds one that t does not, or holds a secret that t does not
// show as it is. Its errors have class [failure.SchemaInvalid] and quote nothing.
func (p *Pipeline) VerifyAnswer(t Text, answer string) error {
	if err := sameLikes(t.s, answer); err != nil {
		return err
	}
	m, err := p.Message("answer", answer)
	if err != nil {
		return err
	}
	for _, pieces := range m.masked {
		for _, piece := range pieces {
			if !strings.Contains(t.s, piece) {
				return failure.Errorf(failure.SchemaInvalid, "vet an answer: it holds a secret that the message does not")
			}
		}
	}
	return nil
}

// VerifyTexts blocks a text that no pipeline of this version made (security 9.5.5).
func (p *Pipeline) VerifyTexts(texts ...Text) error {
	for _, t := range texts {
		if !p.made(t) {
			return failure.Errorf(failure.RedactionBlocked, "vouch for a message: this is not what redaction version %s made of it: redact it again", p.version)
		}
	}
	return nil
}
