package provider

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/language"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/rewrite"
)

// Limits of the length of a rewrite, in characters.
const (
	longest  = 4   // times the length of the message
	shortest = 8   // the message may be so many times longer
	slack    = 200 // for short messages, and for languages with longer words
)

// Check returns an error of class SCHEMA_INVALID unless text is a rewrite of item: a plain text
// in the right language, of plausible length, other than the message, which has the placeholders
// of item in their places and no link, markup, name or secret that the message does not have. The
// error quotes nothing.
func (r *Rewriter) Check(item rewrite.Item, text string) error {
	message := item.Text.String()
	was, is := utf8.RuneCountInString(message), utf8.RuneCountInString(strings.TrimSpace(text))
	switch {
	case !utf8.ValidString(text) || strings.ContainsFunc(text, func(c rune) bool { return isControl(c) && !strings.ContainsRune(message, c) }):
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
	case isSame(text, message, item.Languages):
		return unusable("it is the message itself")
	case !placed(text, message):
		return unusable("a placeholder is missing, repeated, or in another place than in the message")
	}
	for what, form := range additions {
		had := formsIn(message, form)
		if slices.ContainsFunc(formsIn(text, form), func(f string) bool { return !slices.Contains(had, f) }) {
			return unusable("it has a " + what + " that the message does not have")
		}
	}
	if item.Languages.Same() && isEnglish(item.Languages.To) && addsName(text, message) {
		return unusable("it has a name that the message does not have")
	}
	return r.pipeline.VerifyAnswer(item.Text, text)
}

// placeholder matches a placeholder of redaction.
var placeholder = regexp.MustCompile(`\[REDACTED:[a-z0-9-]+:[0-9a-f]+\]`)

// isControl reports whether c controls how a text is shown. The joiners of Persian, Indic scripts
// and emoji do not count.
func isControl(c rune) bool {
	return unicode.IsControl(c) && !strings.ContainsRune("\n\t\r", c) || unicode.Is(unicode.Cf, c) && c != '\u200c' && c != '\u200d'
}

// sameWord is the most letters of a text that two languages may have in common, such as OK.
const sameWord = 12

// isSame reports whether two texts have the same letters and digits.
func isSame(answer, message string, languages rewrite.LanguagePair) bool {
	letters := func(s string) string {
		return strings.Map(func(c rune) rune {
			if unicode.IsLetter(c) || unicode.IsDigit(c) {
				return unicode.ToLower(c)
			}
			return -1
		}, s)
	}
	said := letters(message)
	return said != "" && said == letters(answer) && (languages.Same() || len(said) > sameWord)
}

// additions are the forms that an answer may have only where the message has the same, since a
// client may load or follow them, or show them as something else than text.
var additions = map[string]*regexp.Regexp{
	"link":    regexp.MustCompile(`[a-z][a-z0-9+.-]*:(?://|[^\s:]*@)\S*|\b(?:mailto|tel|sms|javascript|data|file):\S+|(?:^|[^:\w])//\w\S*|\\\\\w\S*|\S*@[\pL\pN]\S*`),
	"domain":  regexp.MustCompile(`[\pL\pN_-]+(?:\.[\pL\pN_-]+)*\.\pL[\pL\pN-]*[\pL\pN]|\b\d{1,3}(?:\.\d{1,3}){3}\b`),
	"tag":     regexp.MustCompile(`</?[a-z!?][^<>]*>?|&(?:#x?[0-9a-f]+|[a-z]+\d*);|\[/?(?:b|i|u|s|url|img|code|quote|color|size|email)(?:=[^\]]*)?\]|\{\{|\$\{|<%`),
	"markup":  regexp.MustCompile("`|\\*\\*|__|~~|\\*\\S[^*\\n]*\\*|\\$\\$|\\]\\s?[(\\[:]|!\\["),
	"heading": regexp.MustCompile(`(?m)^ {0,3}(?:#{1,6} |>|\||(?:=|-|\*){3,} *$)`),
}

// formsIn returns what form matches in a text: in small letters, without what is not seen, with
// one dot for all, and with a mark for each placeholder, which may be a part of a link.
func formsIn(s string, form *regexp.Regexp) []string {
	s = strings.Map(func(c rune) rune {
		switch {
		case unicode.Is(unicode.Cf, c) || unicode.Is(unicode.Variation_Selector, c):
			return -1
		case c == '．' || c == '｡':
			return '.'
		}
		return unicode.ToLower(c)
	}, placeholder.ReplaceAllString(s, "\u2021"))
	found := form.FindAllString(latinDot.ReplaceAllString(s, "$1.$2"), -1)
	for i := range found {
		found[i] = strings.TrimRight(found[i], `.,;:!?)"'”’`)
	}
	return found
}

// latinDot matches a Chinese full stop that browsers read as the dot of a domain.
var latinDot = regexp.MustCompile(`([a-z0-9])。([a-z0-9])`)

// placed reports whether the answer has each placeholder of the message as often, each between
// blanks, marks of a sentence or the same characters as in the message: what is put back there
// must not become a part of anything else.
func placed(answer, message string) bool {
	had, has := placesOf(message), placesOf(answer)
	if len(had) != len(has) {
		return false
	}
	for name, places := range has {
		if len(places) != len(had[name]) {
			return false
		}
		for _, p := range places {
			same := func(of func(place) string) bool {
				return slices.ContainsFunc(had[name], func(q place) bool { return of(p) == of(q) })
			}
			if !freeBefore.MatchString(p.before) && !same(func(p place) string { return p.before }) ||
				!freeAfter.MatchString(p.after) && !same(func(p place) string { return p.after }) {
				return false
			}
		}
	}
	return true
}

// A place is the character before a placeholder and the two after it; no character is a blank.
type place struct{ before, after string }

func placesOf(s string) map[string][]place {
	places := map[string][]place{}
	for _, at := range placeholder.FindAllStringIndex(s, -1) {
		before, _ := utf8.DecodeLastRuneInString(s[:at[0]])
		after := []rune(s[at[1]:min(len(s), at[1]+2*utf8.UTFMax)] + "  ")
		if at[0] == 0 {
			before = ' '
		}
		places[s[at[0]:at[1]]] = append(places[s[at[0]:at[1]]], place{string(before), string(after[:2])})
	}
	return places
}

// Scripts without blanks between words have their letters beside a placeholder.
var (
	freeBefore = regexp.MustCompile(`^[\s\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}、。，：「"“„«‘'(]$`)
	freeAfter  = regexp.MustCompile(`^(?:[\s\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}、。，！？」].|[.,;:!?"”“»’')][\s.,;:!?"”“»’')]|['’]s)`)
)

func isEnglish(tag string) bool {
	base, _ := language.Make(tag).Base()
	return base.String() == "en"
}

// addsName reports whether an English answer has a word with a capital within a sentence that
// is nowhere in the message.
func addsName(answer, message string) bool {
	had := strings.ToLower(message)
	for _, m := range capitalized.FindAllStringSubmatch(placeholder.ReplaceAllString(answer, ""), -1) {
		if !strings.Contains(had, strings.ToLower(m[1])) {
			return true
		}
	}
	return false
}

// capitalized matches a word with a capital after a small letter, a comma or a bracket.
var capitalized = regexp.MustCompile(`[\p{Ll}\d,;][)'"”’]?[ \t]+\(?(\p{Lu}\p{Ll}+)`)

func unusable(why string) error {
	return failure.Errorf(failure.SchemaInvalid, "answer of the model cannot be used: %s", why)
}
