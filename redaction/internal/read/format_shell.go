package read

import (
	"cmp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
	"mvdan.cc/sh/v3/syntax"
)

// readShell reads the assignments of a script, the defaults of its variables, and the words of its
// commands: an option names the word behind it. The rest of a script is left to the tokens.
func readShell(text string) (doc document) {
	if len(text) > maxSlow {
		return doc
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangBash)).Parse(strings.NewReader(text), "")
	if file == nil || err != nil {
		return doc
	}
	root := &Step{}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name == nil {
				break
			}
			step := &Step{Name: n.Name.Value, Up: root}
			doc.word(text, n.Value, step, judge.Assigned)
			if n.Array != nil {
				for _, e := range n.Array.Elems {
					doc.word(text, e.Value, &Step{Up: step}, judge.Item)
				}
			}
		case *syntax.ParamExp:
			if n.Exp != nil && n.Param != nil {
				doc.word(text, n.Exp.Word, &Step{Name: n.Param.Value, Up: root}, judge.Fallback)
			}
		case *syntax.CallExpr:
			doc.call(text, n.Args, root)
		}
		return true
	})
	slices.SortFunc(doc.Values, func(a, b Value) int { return cmp.Compare(a.Start, b.Start) })
	return doc
}

// call adds the arguments of a command that have the name of an option.
func (doc *document) call(text string, words []*syntax.Word, root *Step) {
	if len(words) == 0 {
		return
	}
	command := &Step{Name: words[0].Lit(), Up: root}
	for i, w := range words[1:] {
		doc.assigned(text, w, command)
		option := words[i].Lit()
		if strings.HasPrefix(option, "--") && !strings.Contains(option, "=") && !strings.HasPrefix(w.Lit(), "-") {
			doc.word(text, w, &Step{Name: strings.TrimLeft(option, "-"), Up: command}, judge.Spaced)
		}
	}
}

// assigned adds the value of an argument such as --name=value, NAME=value, 'NAME=a value'.
func (doc *document) assigned(text string, w *syntax.Word, command *Step) {
	start, end := int(w.Pos().Offset()), min(int(w.End().Offset()), len(text))
	if start >= end {
		return
	}
	start, end, quoted := unquote(text, start, end)
	name, value, ok := strings.Cut(text[start:end], "=")
	name = strings.TrimLeft(name, "-")
	if !ok || name == "" || !lex.AllIn(name, &lex.IdentSet) || lex.IsDigit(name[0]) || strings.HasPrefix(value, "$") {
		return
	}
	start, end, more := unquote(text, end-len(value), end)
	doc.add(&Step{Name: name, Up: command}, start, end, quoted || more, judge.Assigned)
}

// unquote returns text[start:end] without the quotes around it.
func unquote(text string, start, end int) (from, to int, quoted bool) {
	if s := text[start:end]; len(s) > 1 && (s[0] == '"' || s[0] == '\'') && strings.IndexByte(s[1:], s[0]) == len(s)-2 {
		return start + 1, end - 1, true
	}
	return start, end, false
}

// word adds a word that is one literal.
func (doc *document) word(text string, w *syntax.Word, path *Step, bind judge.Binding) {
	if w == nil || len(w.Parts) != 1 {
		return
	}
	start, end := int(w.Pos().Offset()), int(w.End().Offset())
	if start > end || end > len(text) {
		return
	}
	switch w.Parts[0].(type) {
	case *syntax.Lit:
		doc.add(path, start, end, false, bind)
	case *syntax.SglQuoted, *syntax.DblQuoted:
		start += strings.IndexAny(text[start:end], `"'`) + 1
		doc.add(path, start, end-1, true, bind)
	}
}
