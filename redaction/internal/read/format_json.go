package read

import (
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// readJSON reads JSON, also with comments and trailing commas, and texts of several JSON values, one
// behind the other or one per line.
func readJSON(text string) (doc document) {
	for at := 0; at < len(text); {
		end, closers, ok := jsonEnd(text, at)
		if !ok {
			return doc
		}
		if v, err := hujson.Parse([]byte(text[at:end] + closers)); err == nil {
			doc.json(text, at, &v, &Step{})
			doc.Read = append(doc.Read, part{at, end})
			doc.Cut = closers != ""
		} else if closers != "" {
			return doc
		}
		at = end
	}
	return doc
}

// jsonEnd returns where the value at at ends. closers are what is missing at the end of the
// text. ok is not set if the value nests too deeply.
func jsonEnd(text string, at int) (end int, closers string, ok bool) {
	var open []byte
	i, started := at, false
	for i < len(text) {
		c := text[i]
		i++
		switch c {
		case '"':
			started = true
			for i < len(text) && text[i] != '"' && text[i] != '\n' {
				if text[i] == '\\' {
					i++
				}
				i++
			}
			if i >= len(text) {
				slices.Reverse(open)
				return len(text), `"` + string(open), true
			}
			i++
		case '/':
			mark, n := "\n", 0
			if i < len(text) && text[i] == '*' {
				mark, n = "*/", 1
			}
			k := strings.Index(text[min(len(text), i+n):], mark)
			if k < 0 {
				i = len(text)
				break
			}
			i += n + k + len(mark)
		case '{', '[':
			if open = append(open, c+2); len(open) > maxNesting {
				return 0, "", false
			}
		case '}', ']':
			started = true
			if len(open) > 0 {
				open = open[:len(open)-1]
			}
		}
		if started && len(open) == 0 && (i >= len(text) || text[i] == '\n' || c == '}' || c == ']') {
			return skipSpace(text, i), "", true
		}
	}
	slices.Reverse(open)
	return len(text), string(open), true
}

func skipSpace(text string, at int) int {
	for at < len(text) && (text[at] == ' ' || text[at] == '\n' || text[at] == '\r' || text[at] == '\t') {
		at++
	}
	return at
}

// json adds the scalars of the value, whose text begins at base.
func (doc *document) json(text string, base int, v *hujson.Value, path *Step) {
	switch value := v.Value.(type) {
	case hujson.Literal:
		start, end, quoted := base+v.StartOffset, min(len(text), base+v.EndOffset), false
		if value.Kind() == '"' {
			start, quoted = start+1, true
			if end > start && text[end-1] == '"' && base+v.EndOffset <= len(text) {
				end--
			}
		}
		doc.add(path, start, end, quoted, binding(path))
	case *hujson.Object:
		for i := range value.Members {
			m := &value.Members[i]
			name, _ := m.Name.Value.(hujson.Literal)
			doc.json(text, base, &m.Value, &Step{Name: name.String(), Up: path})
		}
	case *hujson.Array:
		for i := range value.Elements {
			doc.json(text, base, &value.Elements[i], &Step{Up: path})
		}
	}
}
