package read

import (
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v4"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// readYAML reads the documents of a YAML text, each by itself: one that does not parse leaves the others.
func readYAML(text string) (doc document) {
	plain := withoutTemplates(text)
	for from := 0; from < len(text); {
		to := nextYAML(plain, from)
		var root yaml.Node
		if yaml.Unmarshal([]byte(plain[from:to]), &root) == nil {
			w := yamlReader{text: plain[:to], at: from, line: 1, column: 1, anchors: map[*yaml.Node]Value{}}
			w.node(&root, &Step{}, 0)
			if !w.lost {
				slices.SortStableFunc(w.doc.Values, func(a, b Value) int { return a.Start - b.Start })
				doc.Values = append(doc.Values, w.doc.Values...)
				doc.Read = append(doc.Read, part{from, to})
			}
		}
		from = to
	}
	return doc
}

// nextYAML returns where the document behind the one at from begins.
func nextYAML(text string, from int) int {
	at := from + 1
	for {
		i := strings.Index(text[at-1:], "\n---")
		if i < 0 {
			return len(text)
		}
		if at += i; at+3 == len(text) || strings.IndexByte(" \t\r\n", text[at+3]) >= 0 {
			return at
		}
		at++
	}
}

// A yamlReader finds the nodes of a document in its text: the parser counts lines and runes.
type yamlReader struct {
	text             string
	at, line, column int
	doc              document
	anchors          map[*yaml.Node]Value
	// lost is set if a node is not where the parser says.
	lost bool
}

func (w *yamlReader) node(n *yaml.Node, path *Step, depth int) {
	if w.lost || depth > maxNesting {
		w.lost = true
		return
	}
	switch n.Kind {
	case yaml.DocumentNode:
		for _, c := range n.Content {
			w.node(c, path, depth+1)
		}
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := n.Content[i]
			if key.Kind != yaml.ScalarNode {
				w.node(key, path, depth+1)
			}
			w.node(n.Content[i+1], &Step{Name: key.Value, Up: path}, depth+1)
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			w.node(c, &Step{Up: path}, depth+1)
		}
	case yaml.ScalarNode:
		count := len(w.doc.Values)
		if w.scalar(n, path); n.Anchor != "" && len(w.doc.Values) > count {
			w.anchors[n] = w.doc.Values[count]
		}
	case yaml.AliasNode: // the scalar has a name here as well
		if v, ok := w.anchors[n.Alias]; ok {
			v.Path, v.Bind = path, binding(path)
			w.doc.Values = append(w.doc.Values, v)
		}
	}
}

// scalar adds a scalar after its text was compared with the one that the parser read.
func (w *yamlReader) scalar(n *yaml.Node, path *Step) {
	if n.Value == "" {
		return
	}
	at, ok := w.offset(n.Line, n.Column)
	for ok && at < len(w.text) && (w.text[at] == '&' || w.text[at] == '!') { // an anchor, a tag
		for at < len(w.text) && strings.IndexByte(" \t\r\n", w.text[at]) < 0 {
			at++
		}
		at = skipSpace(w.text, at)
	}
	if !ok || at >= len(w.text) {
		w.lost = true
		return
	}
	switch c := w.text[at]; {
	case n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0:
		end := at + 1
		for end < len(w.text) && (w.text[end] != c || c == '\'' && strings.HasPrefix(w.text[end:], "''")) {
			if w.text[end] == '\'' && c == '\'' || w.text[end] == '\\' && c == '"' {
				end++
			}
			end++
		}
		w.lost = c != '"' && c != '\'' || end >= len(w.text)
		escaped := strings.ContainsAny(w.text[at+1:min(end, len(w.text))], "\\'\n")
		if w.lost = w.lost || !escaped && w.text[at+1:end] != n.Value; !w.lost {
			w.doc.add(path, at+1, end, true, binding(path))
		}
	default:
		if c == '|' || c == '>' {
			if n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
				w.lost = true
				return
			}
			at = lex.LineEnd(w.text, at)
		}
		start, end, ok := follow(w.text, at, n.Value)
		if w.lost = !ok; ok {
			w.doc.add(path, start, end, false, binding(path))
		}
	}
}

// offset returns the offset of a column of a line. Nodes are asked for in order.
func (w *yamlReader) offset(line, column int) (int, bool) {
	if line < w.line || line == w.line && column < w.column {
		return 0, false
	}
	for w.at < len(w.text) && (w.line < line || w.column < column) {
		n := 1
		if c := w.text[w.at]; c >= utf8.RuneSelf {
			_, n = utf8.DecodeRuneInString(w.text[w.at:])
		}
		switch r := w.text[w.at : w.at+n]; {
		case r == "\r" && strings.HasPrefix(w.text[w.at:], "\r\n"):
			n = 2
			fallthrough
		case r == "\n", r == "\r", r == "\u0085", r == "\u2028", r == "\u2029":
			if w.line == line {
				return 0, false
			}
			w.line, w.column = w.line+1, 1
		case r != "\ufeff":
			w.column++
		}
		w.at += n
	}
	return w.at, w.line == line && w.column == column
}

// follow returns the part of text, at or behind at, that is value but for blanks and line ends.
func follow(text string, at int, value string) (start, end int, ok bool) {
	if strings.TrimSpace(value) == "" {
		return at, at, true
	}
	start = -1
	for i := 0; i < len(value); i++ {
		if value[i] == ' ' || value[i] == '\n' || value[i] == '\t' || value[i] == '\r' {
			continue
		}
		if at = skipSpace(text, at); at >= len(text) || text[at] != value[i] {
			return 0, 0, false
		}
		if start < 0 {
			start = at
		}
		at++
	}
	return start, at, start >= 0
}

// templates are the delimiters of templates in YAML files.
var templates = [][2]string{{"{{", "}}"}, {"<%", "%>"}, {"{%", "%}"}}

// withoutTemplates returns text with its templates overwritten by a word, or made a comment if there
// is nothing else on the line. The offsets stay.
func withoutTemplates(text string) string {
	var out []byte
	for at := 0; at < len(text); at++ {
		i := slices.IndexFunc(templates, func(t [2]string) bool { return strings.HasPrefix(text[at:], t[0]) })
		if i < 0 {
			continue
		}
		n := strings.Index(text[at:], templates[i][1])
		if n < 0 {
			break
		}
		if out == nil {
			out = []byte(text)
		}
		end := at + n + len(templates[i][1])
		before, after := lex.RunBack(text, at, &lex.BlankSet, at), lex.Run(text, end, &lex.BlankSet, len(text))
		alone := (before == 0 || text[before-1] == '\n') && (after == len(text) || text[after] == '\n' || text[after] == '\r')
		for k := at; k < end; k++ {
			switch {
			case text[k] == '\n' || text[k] == '\r':
			case alone && (k == at || text[k-1] == '\n'):
				out[k] = '#'
			default:
				out[k] = 'x'
			}
		}
		at = end - 1
	}
	if out == nil {
		return text
	}
	return string(out)
}
