package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A level is a member or item of YAML whose lines are indented deeper than it.
type level struct {
	indent int
	step   *step
	isItem bool
}

// A part is text[from:to].
type part struct{ from, to int }

// blocks reads the members and items of YAML from at on, by their indentation: the whole text, or, if root is
// not nil, the lines below a name that is indented by base. It returns the keys as well, and where it ended.
func (d *reader) blocks(rg *region, at int, root *step, base int) (values []value, keys []part, end int) {
	whole := root == nil
	if whole {
		root = &step{}
	}
	levels := []level{{-1, root, false}}
	anchors := map[string]value{}
	for at < rg.to {
		stop := min(rg.to, lex.LineEnd(d.s, at))
		begin := lex.Run(d.s[:stop], at, &lex.BlankSet, stop-at)
		line, indent := strings.TrimRight(d.s[begin:stop], " \t\r\n"), begin-at
		isItem := isItem(line)
		switch {
		case line == "", line[0] == '#', whole && lex.BeginsWith(line, []string{"{{", "{%", "<%"}):
			at = stop
			continue
		case line[0] == 1, line == "...", line == "---", strings.HasPrefix(line, "--- "):
			if !whole {
				return values, keys, at
			}
			levels, at = []level{{-1, &step{}, false}}, stop
			continue
		case !whole && (indent < base || indent == base && !isItem):
			return values, keys, at
		}
		for isItem && (line == "-" || line[:2] == "- ") {
			levels = under(levels, indent, true)
			levels = append(levels, level{indent, d.below(levels[len(levels)-1].step, ""), true})
			rest := strings.TrimLeft(line[1:], " ")
			begin, indent, line = begin+len(line)-len(rest), indent+len(line)-len(rest), rest+strings.Repeat(" ", 2-min(2, len(rest)))
		}
		line = strings.TrimRight(line, " ")
		key, size := keyOf(line)
		switch {
		case key != "" && len(levels) < maxNesting:
			levels = under(levels, indent, false)
			levels = append(levels, level{indent, d.below(levels[len(levels)-1].step, key), false})
			keys = append(keys, part{begin, begin + size})
		case !isItem && !whole:
			return values, keys, at
		case !isItem:
			levels = under(levels, indent, false)
		}
		v := value{path: levels[len(levels)-1].step, bind: judge.Assigned}
		if v.path.name == "" {
			v.bind = judge.Item
		}
		var anchor string
		begin, anchor = tagged(d.s, begin+size, begin+len(line))
		if at = stop; begin == begin-size+len(line) {
			continue
		}
		switch text := d.s[begin:stop]; {
		case text[0] == '|' || text[0] == '>':
			for begin = stop; at < rg.to; at = lex.LineEnd(d.s, at) {
				first := lex.Run(d.s, at, &lex.BlankSet, rg.to-at)
				if first < rg.to && d.s[first] != '\n' && d.s[first] != '\r' && first-at <= indent {
					break
				}
			}
			v.lit = trim(d.s, literal{start: begin, end: min(at, rg.to)})
		case (text[0] == '{' || text[0] == '[') && !strings.HasPrefix(text, "{{") && d.Names.PlaceholderLen(text) == 0:
			more, behind := d.tree(rg.cursorAt(begin), v.path, false)
			values, at = append(values, more...), lex.LineEnd(d.s, behind.offset())
			continue
		case text[0] == '*':
			if known, ok := anchors[strings.TrimSpace(text[1:])]; ok {
				v.lit = known.lit
			}
		default:
			v.lit, at = d.scalar(begin, stop, rg.to)
		}
		if v.lit.start >= v.lit.end {
			continue
		}
		v.lit.next = rg.cursorAt(v.lit.end)
		if values = append(values, v); anchor != "" {
			anchors[anchor] = v
		}
	}
	return values, keys, at
}

func isItem(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

// under removes the levels that a line with the indentation is not below of. Items may be indented like
// the key of their list.
func under(levels []level, indent int, isItem bool) []level {
	for n := len(levels) - 1; n > 0 && (levels[n].indent > indent || levels[n].indent == indent && (!isItem || levels[n].isItem)); n-- {
		levels = levels[:n]
	}
	return levels
}

// keyOf returns the key that a line begins with, and the bytes of it and its colon.
func keyOf(line string) (key string, size int) {
	i := 0
	if line != "" && (line[0] == '"' || line[0] == '\'') {
		if i = strings.IndexByte(line[1:], line[0]) + 2; i == 1 {
			return "", 0
		}
	}
	k := strings.Index(line[i:]+" ", ": ")
	if k < 0 || strings.ContainsAny(line[i:i+k], " =({[") || i > 0 && k > 0 {
		return "", 0
	}
	return strings.Trim(line[:i+k], "\"'\ufeff"), min(len(line), i+k+1)
}

// tagged returns where the scalar in s[at:end] begins, behind blanks, tags and its anchor.
func tagged(s string, at, end int) (begin int, anchor string) {
	for {
		at = lex.Run(s[:end], at, &lex.BlankSet, end-at)
		if at == end || s[at] != '&' && s[at] != '!' {
			break
		}
		next := lex.Run(s[:end], at, &lex.NotBlank, end-at)
		if s[at] == '&' {
			anchor = s[at+1 : next]
		}
		at = next
	}
	if at < end && s[at] == '#' {
		return end, anchor
	}
	return at, anchor
}

// scalar reads the scalar at at, whose line ends at stop. One in quotes may have several lines. next is where the
// line behind it begins.
func (d *reader) scalar(at, stop, to int) (lit literal, next int) {
	if q := d.s[at]; q == '"' || q == '\'' {
		for i := at + 1; i < to; i++ {
			switch {
			case d.s[i] == '\\' && q == '"', d.s[i] == q && lex.ByteAt(d.s[:to], i+1) == q && q == '\'':
				i++
			case strings.HasPrefix(d.s[i:to], "{{"): // a template may have quotes
				i += max(0, strings.Index(d.s[i:stop], "}}"))
			case d.s[i] == q:
				return literal{start: at + 1, end: i, quoted: true}, min(to, lex.LineEnd(d.s, i))
			}
		}
	}
	text, _, _ := strings.Cut(d.s[at:stop], " #")
	return trim(d.s, literal{start: at, end: at + len(text)}), stop
}

// block masks the secrets in the lines at c that are below the name. It reports whether there are such lines.
func (d *reader) block(n judge.Name, place string, c cursor) bool {
	at, from := lex.LineBegin(d.s, c.offset()), lex.LineBegin(d.s, n.Begin)
	if at < d.listEnd {
		return true
	}
	if c.back().before() == "=" {
		return false
	}
	base := lex.Run(d.s, from, &lex.BlankSet, n.Begin-from) - from
	if isItem(d.s[from+base : n.Begin]) { // the name is in an item itself
		base++
	}
	values, _, end := d.blocks(c.rg, at, &step{name: n.Ident, own: n, of: n}, base)
	if end > at {
		d.listEnd = end
		d.judgeAll(values, place)
	}
	return end > at
}

// document returns the scalars of a text whose language is one of documents, and the names of their members,
// which are not secrets.
func (d *reader) document(rg *region) (values []value, keys []part) {
	name := d.lang.Name
	if d.lang == lex.Unknown && strings.HasPrefix(strings.TrimLeft(d.s, "[ \t\r\n"), "{") {
		name = "json"
	} else if d.lang == lex.Unknown && strings.Contains(d.s, "kind") && strings.Contains(d.s, "Secret") {
		name = "yaml"
	}
	switch name {
	case "yaml":
		values, keys, _ = d.blocks(rg, 0, nil, -1)
	case "json", "hcl", "toml", "ini":
		for c := (cursor{rg, 0}); c.i < len(rg.toks); c = c.next() {
			var more []value
			more, c = d.tree(c, &step{}, true)
			values = append(values, more...)
		}
	}
	return values, keys
}

// withoutKeys removes spans in the names of members.
func withoutKeys(spans []judge.Span, keys []part) []judge.Span {
	return slices.DeleteFunc(spans, func(s judge.Span) bool {
		i, found := slices.BinarySearchFunc(keys, s.Start, func(p part, at int) int { return p.from - at })
		return found || i > 0 && keys[i-1].to > s.Start
	})
}
