package provider

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// Limits of the length of a rewrite, in characters.
const (
	longest  = 4   // times the length of the message
	shortest = 8   // the message may be so many times longer
	slack    = 200 // for short messages, and for languages with longer words
)

// Check returns an error of class SCHEMA_INVALID unless answer is a rewrite of item: in
// the right language, of plausible length, with exactly the placeholders of item and no
// secret that the message does not have. The error quotes nothing.
func (r *Rewriter) Check(item rewrite.Item, answer rewrite.Answer) error {
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
		return unusable("it is not in the requested language")
	}
	return r.pipeline.VerifyAnswer(item.Text, text)
}

// placeholder matches text without a language.
var placeholder = regexp.MustCompile(`\[REDACTED:[a-z0-9-]+:[0-9a-f]+\]`)

func isControl(c rune) bool { return c < ' ' && c != '\n' && c != '\t' && c != '\r' || c == 0x7f }

func unusable(why string) error {
	return failure.Errorf(failure.SchemaInvalid, "answer of the model cannot be used: %s", why)
}
