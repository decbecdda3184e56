package lex

import (
	_ "embed"
	"path"
	"slices"
	"strings"
)

//go:embed languages.txt
var languagesFile string

// A LanguageKind says what a word without quotes is.
type LanguageKind uint8

// The kinds of languages, by what a word without quotes is.
const (
	Text   LanguageKind = iota // prose, a log, a snippet of an unknown language
	Code                       // a name
	Shell                      // an argument
	Script                     // an argument, or a name
	Config                     // a value, or a name
	Markup                     // text between tags
)

var languageKinds = map[string]LanguageKind{"text": Text, "code": Code, "shell": Shell, "script": Script, "config": Config, "markup": Markup}

// A Language is how texts of some files are read.
type Language struct {
	Name string
	Kind LanguageKind
	// openers are what begins a literal or a comment, by its first byte, the longest first.
	openers [256][]opener
}

// An opener begins a literal or a comment.
type opener struct {
	open, close string // a comment without an end ends with its line
	kind        Kind
	// The flags of languages.txt.
	isFirst, behindBlank, beforeBlank, lines, raw, doubled bool
	// hereDoc begins a here document, loose is an opener of an unknown language, which counts only in certain places.
	hereDoc, loose bool
}

// languages are the languages of languages.txt, by their names and by the ends of names of files.
var languages = parseLanguages(languagesFile)

// Unknown is the language of a text without a known name.
var Unknown = languages["unknown"]

// Of returns the language of a file.
func Of(file string) *Language {
	base := path.Base(file)
	ext := path.Ext(base)
	for _, end := range []string{base, ext, strings.ToLower(ext)} {
		if l := languages[end]; l != nil {
			return l
		}
	}
	switch {
	case strings.HasPrefix(strings.ToLower(base), "dockerfile."):
		return languages["Dockerfile"]
	case strings.HasPrefix(base, ".env"):
		return languages[".env"]
	}
	return Unknown
}

func parseLanguages(data string) map[string]*Language {
	out := map[string]*Language{}
	for line := range strings.Lines(data) {
		f := strings.Split(strings.TrimSpace(line)+" ", " |")
		if line[0] == '#' || len(f) < 5 {
			continue
		}
		l := &Language{Name: strings.TrimSpace(f[0]), Kind: languageKinds[strings.TrimSpace(f[2])]}
		for i, kind := range []Kind{Comment, Literal} {
			for text := range strings.FieldsSeq(f[3+i]) {
				l.add(text, kind)
			}
		}
		if strings.TrimSpace(f[4]) == "unknown" {
			l.openers = out["unknown"].openers
		}
		for end := range strings.FieldsSeq(f[1] + " " + l.Name) {
			out[end] = l
		}
	}
	return out
}

// add adds the delimiters of a literal or a comment, such as """:m.
func (l *Language) add(text string, kind Kind) {
	flags := ""
	if i := strings.LastIndexByte(text, ':'); i > 0 && i+1 < len(text) {
		text, flags = text[:i], text[i:]
	}
	open, end, isPair := strings.Cut(text, "..")
	if !isPair && kind == Literal {
		end = open
	}
	has := func(flag string) bool { return strings.Contains(flags, flag) }
	list := &l.openers[open[0]]
	*list = append(*list, opener{
		open: open, close: end, kind: kind, isFirst: has("b"), behindBlank: has("w"), beforeBlank: has("s"),
		lines: has("m") || kind == Comment, raw: has("r") || kind == Comment, doubled: has("d"), hereDoc: open == "<<", loose: l.Name == "unknown",
	})
	slices.SortStableFunc(*list, func(a, b opener) int { return len(b.open) - len(a.open) })
}
