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
	Shell                      // an argument, or a name
	Config                     // a value, or a name
	Markup                     // text between tags
)

var languageKinds = map[string]LanguageKind{"text": Text, "code": Code, "shell": Shell, "config": Config, "markup": Markup}

// A Language is how texts of some files are read.
type Language struct {
	Name string
	Kind LanguageKind
	// openers are what begins a literal or a comment, by its first byte, the longest first.
	openers [256][]opener
}

// An opener begins a literal or a comment.
type opener struct {
	open, close string
	kind        Kind
	// A literal without lines ends with its line; one without escapes has no backslash; in a
	// doubled one, two of its ends are one byte of the text.
	lines, raw, doubled bool
	// hereDoc begins a here document, loose is an opener of an unknown language, which counts only
	// in certain places.
	hereDoc, loose bool
}

// languages are the languages of languages.txt, by the ends of names of files.
var languages = parseLanguages(languagesFile)

// Unknown is the language of a text without a known name.
var Unknown = unknownLanguage()

// Of returns the language of a file.
func Of(file string) *Language {
	base := path.Base(file)
	if l := languages[base]; l != nil {
		return l
	}
	if strings.Contains(base, ".") && strings.HasPrefix(strings.ToLower(base), "dockerfile") || strings.HasPrefix(base, ".env") {
		return languages[map[bool]string{true: "Dockerfile", false: ".env"}[base[0] != '.']]
	}
	ext := path.Ext(base)
	if l := languages[ext]; l != nil {
		return l
	}
	if l := languages[strings.ToLower(ext)]; l != nil {
		return l
	}
	return Unknown
}

func parseLanguages(data string) map[string]*Language {
	out := map[string]*Language{}
	for line := range strings.Lines(data) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		f := splitColumns(line)
		l := &Language{Name: f[0], Kind: languageKinds[f[2]]}
		for open := range strings.FieldsSeq(f[3]) {
			l.add(opener{open: open, kind: Comment})
		}
		for pair := range strings.FieldsSeq(f[4]) {
			open, end, _ := strings.Cut(pair, "..")
			l.add(opener{open: open, close: end, kind: Comment, lines: true, raw: true})
		}
		if f[5] == "unknown" {
			l.openers = unknownLanguage().openers
			f[5] = ""
		}
		for pair := range strings.FieldsSeq(f[5]) {
			l.add(literalOpener(pair))
		}
		for end := range strings.FieldsSeq(f[1]) {
			out[end] = l
		}
	}
	return out
}

// splitColumns splits a line of languages.txt: a | between blanks ends a column.
func splitColumns(line string) []string {
	f := strings.Split(strings.TrimRight(line, "\n")+" ", " |")
	for i := range f {
		f[i] = strings.TrimSpace(f[i])
	}
	return append(f, "", "", "", "", "")
}

// literalOpener reads a literal of languages.txt, such as """:m.
func literalOpener(pair string) opener {
	pair, flags, _ := strings.Cut(pair, ":")
	open, end, ok := strings.Cut(pair, "..")
	if !ok {
		end = open
	}
	if strings.HasSuffix(end, "#") { // "..# of Rust and Swift
		end = `"` + end
	}
	has := func(flag string) bool { return strings.Contains(flags, flag) }
	return opener{open: open, close: end, kind: Literal, lines: has("m"), raw: has("r"), doubled: has("d"), hereDoc: open == "<<"}
}

func (l *Language) add(o opener) {
	for _, c := range []byte{o.open[0], strings.ToUpper(o.open)[0]} {
		if c == o.open[0] && slices.Contains(l.openers[c], o) {
			continue
		}
		l.openers[c] = append(l.openers[c], o)
		slices.SortStableFunc(l.openers[c], func(a, b opener) int { return len(b.open) - len(a.open) })
	}
}

// unknownLanguage reads what most languages agree on. A quote, a comment mark or a
// here document counts only where it can be one: see Lexer.opens.
func unknownLanguage() *Language {
	l := &Language{Name: "unknown", Kind: Text}
	for _, open := range []string{"//", "#", "--", ";"} {
		l.add(opener{open: open, kind: Comment, loose: true})
	}
	for _, pair := range []string{"/*..*/", "<!--..-->"} {
		open, end, _ := strings.Cut(pair, "..")
		l.add(opener{open: open, close: end, kind: Comment, lines: true, raw: true, loose: true})
	}
	for _, pair := range []string{`""":m`, "''':m", `":d`, "':d", "``", "`", `r#"..#`, "<<", "<![CDATA[..]]>:mr"} {
		o := literalOpener(pair)
		o.loose = true
		l.add(o)
	}
	return l
}
