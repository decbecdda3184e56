package provider

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// The length of a rewrite, in characters, as a multiple of the message's. The
// slack lets short messages and languages of longer words pass.
const (
	longest  = 4
	shortest = 8 // one in so many
	slack    = 200
)

// Judge returns an error of class SCHEMA_INVALID unless answer is a rewrite of
// item: in the right language, of sensible length, with no placeholder that item
// does not have and none lost, and without a secret the message does not show.
// The error quotes nothing.
func (r *Rewriter) Judge(item rewrite.Item, answer rewrite.Answer) error {
	text := answer.Text
	was, is := utf8.RuneCountInString(item.Text.String()), utf8.RuneCountInString(strings.TrimSpace(text))
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, isControl):
		return unusable("it is not plain text")
	case is == 0:
		return unusable("it is empty")
	case is > longest*was+slack:
		return unusable("it is much longer than the message")
	case is < (was-slack)/shortest:
		return unusable("it is much shorter than the message")
	case strings.Contains(text, nonce(item)):
		return unusable("it repeats the prompt")
	case !inLanguage(placeholder.ReplaceAllString(text, " "), item.Languages.To):
		return unusable("it is not in the language that was asked for")
	}
	return r.guard.VerifyAnswer(item.Text, text)
}

// placeholder is left out where languages are told apart.
var placeholder = regexp.MustCompile(`\[REDACTED:[a-z0-9-]+:[0-9a-f]+\]`)

func isControl(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f }

func unusable(why string) error {
	return failure.Errorf(failure.SchemaInvalid, "answer of the model cannot be used: %s", why)
}
