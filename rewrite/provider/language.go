package provider

import (
	"slices"
	"sync"
	"unicode"

	"github.com/RadhiFadlillah/whatlanggo"
	"golang.org/x/text/language"
)

const (
	minScriptLetters = 8   // texts with fewer letters pass the check of the script
	minWordLetters   = 60  // texts with fewer letters pass the check of the language
	confidence       = 0.5 // the detector's, at most 1, that a text is in another language
)

// alike are groups of languages that the detector confuses.
var alike = [][]string{
	{"da", "nb", "nn", "no", "sv"},
	{"bs", "hr", "sr", "sl", "mk", "bg"},
	{"cs", "sk", "pl"},
	{"es", "pt", "gl", "ca", "it", "ro"},
	{"de", "lb", "nl", "af"},
	{"be", "ru", "uk", "bg"},
	{"hi", "mr", "ne", "bh", "mai"},
	{"id", "ms", "jv", "su"},
	{"tr", "az", "tk", "uz"},
	{"ja", "zh"},
	{"fa", "ar", "ur", "ckb"},
	{"he", "yi"},
}

// scripts holds the letters of ISO 15924 codes. Other scripts are not checked.
var scripts = map[string][]*unicode.RangeTable{
	"Latn": {unicode.Latin}, "Cyrl": {unicode.Cyrillic}, "Grek": {unicode.Greek}, "Arab": {unicode.Arabic},
	"Hebr": {unicode.Hebrew}, "Thai": {unicode.Thai}, "Deva": {unicode.Devanagari}, "Kore": {unicode.Hangul, unicode.Han},
	"Jpan": {unicode.Hiragana, unicode.Katakana, unicode.Han}, "Hans": {unicode.Han}, "Hant": {unicode.Han},
}

// inLanguage reports whether text may be in the language of tag. In doubt it returns
// true: for short texts, names and related languages.
func inLanguage(text, tag string) bool {
	want, err := language.Parse(tag)
	if err != nil {
		return false
	}
	letters := countLetters(text, unicode.Letter)
	if letters < minScriptLetters {
		return true
	}
	if script, sure := want.Script(); sure >= language.High {
		if tables, known := scripts[script.String()]; known && countLetters(text, tables...)*2 < letters {
			return false
		}
	}
	family, _ := want.Base()
	base := family.String()
	if letters < minWordLetters || !detectable()[base] {
		return true
	}
	info := whatlanggo.Detect(text)
	found := info.Lang.Iso6391()
	return found == "" || found == base || info.Confidence < confidence || related(found, base)
}

// detectable holds the languages of the detector.
var detectable = sync.OnceValue(func() map[string]bool {
	known := map[string]bool{}
	for lang := range whatlanggo.Langs {
		known[lang.Iso6391()] = true
	}
	return known
})

func related(a, b string) bool {
	return slices.ContainsFunc(alike, func(group []string) bool { return slices.Contains(group, a) && slices.Contains(group, b) })
}

// countLetters counts the letters of s in the tables.
func countLetters(s string, tables ...*unicode.RangeTable) (n int) {
	for _, r := range s {
		if unicode.IsLetter(r) && unicode.In(r, tables...) {
			n++
		}
	}
	return n
}
