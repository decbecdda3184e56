package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A block reads the members and items of YAML by their indentation: a whole text, or the lines below a name.
type block struct {
	*reader
	rg      *region
	whole   bool
	base    int // the indentation of the line with the name
	levels  []level
	anchors map[string]literal
	values  []value
}

// A level is a member or item whose lines are indented deeper than it.
type level struct {
	indent int
	step   *step
	isItem bool
}

// read reads the lines from at on, which are below root, and returns where they end.
func (b *block) read(at int, root *step) int {
	b.levels, b.anchors = []level{{-1, root, false}}, map[string]literal{}
	for at < b.rg.to {
		stop := min(b.rg.to, lex.LineEnd(b.s, at))
		begin := lex.Run(b.s[:stop], at, &lex.BlankSet, stop-at)
		line, indent := strings.TrimRight(b.s[begin:stop], " \t\r\n"), begin-at
		isSeparator := lex.BeginsWith(line+" ", []string{"\x01", "... ", "--- "})
		switch {
		case line == "", line[0] == '#', b.whole && lex.BeginsWith(line, []string{"{{", "{%", "<%"}):
			at = stop
			continue
		case b.whole && isSeparator:
			b.levels, at = []level{{-1, &step{}, false}}, stop
			continue
		case !b.whole && (isSeparator || indent < b.base || indent == b.base && !isItem(line)):
			return at
		}
		next, ok := b.line(begin, stop, indent)
		if !ok {
			return at
		}
		at = next
	}
	return at
}

// line reads the line s[begin:stop], and the lines of its scalar. ok is not set if it is neither a member nor an item.
func (b *block) line(begin, stop, indent int) (next int, ok bool) {
	line, item := strings.TrimRight(b.s[begin:stop], " \t\r\n"), false
	for ; isItem(line); item = true {
		b.under(level{indent, nil, true}, "")
		rest := strings.TrimLeft(line[1:], " ")
		begin, indent, line = begin+len(line)-len(rest), indent+len(line)-len(rest), rest
	}
	key, size := keyOf(line)
	if key != "" {
		b.under(level{indent, nil, false}, key)
	} else if !item && !b.whole {
		return begin, false
	}
	top := b.levels[len(b.levels)-1].step
	end := begin + len(line)
	begin = lex.Run(b.s[:end], begin+size, &lex.BlankSet, end)
	anchor := ""
	for begin < end && (b.s[begin] == '&' || b.s[begin] == '!') { // an anchor or a tag
		after := lex.Run(b.s[:end], begin, &lex.NotBlank, end)
		if b.s[begin] == '&' {
			anchor = b.s[begin+1 : after]
		}
		begin = lex.Run(b.s[:end], after, &lex.BlankSet, end)
	}
	v := value{path: top, bind: judge.Assigned}
	if top.name == "" {
		v.bind = judge.Item
	}
	switch text := b.s[begin:stop]; {
	case strings.TrimSpace(text) == "", text[0] == '#':
		return stop, true
	case text[0] == '|' || text[0] == '>':
		for next = stop; next < b.rg.to; next = lex.LineEnd(b.s, next) {
			first := lex.Run(b.s, next, &lex.BlankSet, b.rg.to-next)
			if first < b.rg.to && b.s[first] != '\n' && b.s[first] != '\r' && first-next <= indent {
				break
			}
		}
		v.lit = trim(b.s, literal{start: stop, end: min(next, b.rg.to)})
	case (text[0] == '{' || text[0] == '[') && !strings.HasPrefix(text, "{{") && b.Names.PlaceholderLen(text) == 0:
		return b.flow(begin, top), true
	case text[0] == '*':
		v.lit, next = b.anchors[strings.TrimSpace(text[1:])], stop
	default:
		text, _, _ = strings.Cut(text, " #")
		v.lit, next = trim(b.s, literal{start: begin, end: begin + len(text)}), stop
		if t, _ := b.rg.cursorAt(begin).token(); t.Kind == lex.Literal && int(t.Start) == begin { // it may have several lines
			v.lit, next = literal{start: t.Inner(), end: t.InnerEnd(), quoted: true}, min(b.rg.to, lex.LineEnd(b.s, int(t.End)))
		}
	}
	if v.lit.start < v.lit.end {
		v.lit.next = b.rg.cursorAt(v.lit.end)
		b.values = append(b.values, v)
		b.anchors[anchor] = v.lit
	}
	return next, true
}

// flow reads the list or map in brackets at begin, and returns where the line behind it begins.
func (b *block) flow(begin int, top *step) (next int) {
	values, behind := b.tree(b.rg.cursorAt(begin), top, false, false)
	for _, v := range values {
		v.lit.quoted = true // a scalar without quotes is not code
		b.values = append(b.values, v)
	}
	return lex.LineEnd(b.s, behind.offset())
}

// under adds a level below those that it is indented deeper than. Items may be indented like the key of their list.
func (b *block) under(l level, name string) {
	for n := len(b.levels) - 1; n > 0 && (b.levels[n].indent > l.indent || b.levels[n].indent == l.indent && (!l.isItem || b.levels[n].isItem)); n-- {
		b.levels = b.levels[:n]
	}
	if l.step = b.levels[len(b.levels)-1].step; len(b.levels) < maxNesting {
		l.step = b.below(l.step, name)
		b.levels = append(b.levels, l)
	}
}

func isItem(line string) bool { return line == "-" || strings.HasPrefix(line, "- ") }

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

// indented masks the secrets in the lines at c that are below the name. It reports whether there are such lines.
func indented(d *reader, n judge.Name, place string, c cursor) bool {
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
	b := block{reader: d, rg: c.rg, base: base}
	end := b.read(at, &step{name: n.Ident, own: n, of: n})
	if end > at {
		d.listEnd = end
		d.judgeAll(b.values, place)
	}
	return end > at
}

// document returns the scalars of a text whose language is one of documents.
func (d *reader) document(rg *region) (values []value) {
	name := d.lang.Name
	if d.lang == lex.Unknown {
		name = guess(d.s)
	}
	switch name {
	case "yaml":
		b := block{reader: d, rg: rg, whole: true}
		b.read(0, &step{})
		return b.values
	case "json", "hcl", "toml", "ini", "properties":
		for c := (cursor{rg, 0}); c.i < len(rg.toks); c = c.next() {
			var more []value
			more, c = d.tree(c, &step{}, true, name != "json" && name != "hcl")
			values = append(values, more...)
		}
	}
	return values
}

// guess returns the language of documents that a text without a known name may be in, or "".
func guess(s string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(s, " \t\r\n"), "\n")
	first = strings.TrimSpace(first)
	has := func(words ...string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(s, w) })
	}
	switch {
	case strings.HasPrefix(strings.TrimLeft(s, "[ \t\r\n"), "{"):
		return "json"
	case len(first) > 2 && first[0] == '[' && lex.AllIn(first[1:len(first)-1], &lex.IdentSet) && lex.LastByte(first) == ']':
		return "ini"
	case has(`variable "`):
		return "hcl"
	case has("kind", "Secret"), has("name:", "value:"):
		return "yaml"
	}
	return ""
}
