package read

import (
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2/unstable"
)

// readTOML reads the expressions of a TOML text up to one that does not parse.
func readTOML(text string) (doc document) {
	w := tomlReader{text: text, data: slices.Clip([]byte(text)), tables: map[string]*Step{"": {}}}
	w.p.Reset(w.data)
	table := w.tables[""]
	for w.p.NextExpression() {
		switch e := w.p.Expression(); e.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = w.tables[""]
			var path strings.Builder
			for it := e.Key(); it.Next(); {
				path.WriteString("\x00" + string(it.Node().Data))
				key := path.String()
				if w.tables[key] == nil || it.IsLast() && e.Kind == unstable.ArrayTable {
					w.tables[key] = &Step{Name: string(it.Node().Data), Up: table}
				}
				table = w.tables[key]
			}
		case unstable.KeyValue:
			w.member(e, table)
		}
	}
	if w.p.Error() == nil && !w.lost {
		w.doc.Read = []part{{0, len(text)}}
	}
	return w.doc
}

type tomlReader struct {
	text   string
	data   []byte
	p      unstable.Parser
	tables map[string]*Step
	doc    document
	lost   bool
}

// member reads name = value, where the name may be several, joined by dots.
func (w *tomlReader) member(e *unstable.Node, path *Step) {
	for it := e.Key(); it.Next(); {
		path = &Step{Name: string(it.Node().Data), Up: path}
	}
	w.value(e.Value(), path, 0)
}

func (w *tomlReader) value(n *unstable.Node, path *Step, depth int) {
	if depth > maxNesting {
		w.lost = true
		return
	}
	switch n.Kind {
	case unstable.Array:
		for it := n.Children(); it.Next(); {
			if it.Node().Kind != unstable.Comment {
				w.value(it.Node(), &Step{Up: path}, depth+1)
			}
		}
	case unstable.InlineTable:
		for it := n.Children(); it.Next(); {
			if it.Node().Kind == unstable.KeyValue {
				e := it.Node()
				inner := path
				for k := e.Key(); k.Next(); {
					inner = &Step{Name: string(k.Node().Data), Up: inner}
				}
				w.value(e.Value(), inner, depth+1)
			}
		}
	case unstable.String:
		start, end := int(n.Raw.Offset), int(n.Raw.Offset+n.Raw.Length)
		quotes := 1
		if raw := w.text[start:end]; len(raw) >= 6 && (strings.HasPrefix(raw, `"""`) || strings.HasPrefix(raw, "'''")) {
			quotes = 3
		}
		w.doc.add(path, start+quotes, end-quotes, true, binding(path))
	default:
		if r := n.Raw; r.Length > 0 {
			w.doc.add(path, int(r.Offset), int(r.Offset+r.Length), false, binding(path))
		} else if len(n.Data) > 0 {
			r = w.p.Range(n.Data)
			w.doc.add(path, int(r.Offset), int(r.Offset+r.Length), false, binding(path))
		}
	}
}
