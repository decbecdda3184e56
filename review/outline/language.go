package outline

import (
	_ "embed"
	"fmt"
	"path"
	"regexp"
	"strings"
)

// A language is an entry of languages.txt.
type language struct {
	name, grammar string
	// rules are the kinds of nodes, as grammars/outline.c reads them.
	rules string
	blank *regexp.Regexp // nil for none
}

//go:embed languages.txt
var languagesText string

// languages are the languages by the end of the name of a file.
var languages = mustParseLanguages(languagesText)

// kindOf are the kinds of records, by the key in languages.txt.
var kindOf = map[string]Kind{"function": Function, "type": Type, "value": Value, "import": imported, "wrapper": wrapper, "scope": scope}

func mustParseLanguages(text string) map[string]*language {
	byEnd := map[string]*language{}
	var l *language
	for line := range strings.Lines(text) {
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		rest = strings.TrimSpace(rest)
		switch key {
		case "", "#":
		case "language":
			l = &language{name: rest}
		case "grammar":
			l.grammar = rest
		case "files":
			for end := range strings.FieldsSeq(rest) {
				byEnd[end] = l
			}
		case "blank":
			l.blank = regexp.MustCompile(rest)
		default:
			kind, ok := kindOf[key]
			if !ok {
				panic("languages.txt: unknown key " + key)
			}
			for node := range strings.FieldsSeq(rest) {
				name, star := strings.CutPrefix(node, "*")
				l.rules += fmt.Sprintf("%s %s%d\n", name, strings.Repeat("*", map[bool]int{true: 1}[star]), kind)
			}
		}
	}
	return byEnd
}

// languageOf returns the language of a file, nil for an unknown one.
func languageOf(depotPath string) *language { return languages[strings.ToLower(path.Ext(depotPath))] }

// prepare returns text of the same length that the grammar can read.
func (l *language) prepare(text string) string {
	if l.blank == nil {
		return text
	}
	return l.blank.ReplaceAllStringFunc(text, func(s string) string {
		blank := []byte(s)
		for i, c := range blank {
			if c != '\n' {
				blank[i] = ' '
			}
		}
		return string(blank)
	})
}
