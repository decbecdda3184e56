package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A frame is an open bracket of a tree.
type frame struct {
	step   *step
	key    *step // of the member whose value is read, or nil
	valued bool  // the member has a value
	isList bool
	isCall bool        // of a function whose result is the value of the member step
	labels []lex.Token // what is before the bracket of a block, as in variable "name" {
	// The numbers text[from:to], and how many other words there are.
	from, to, numbers, others int
}

// tree reads the members and elements in brackets: JSON, HCL, TOML, the sections of INI files, and the lists
// and maps of code. root is the step of the first bracket, or of the whole text if whole is set. It
// returns what is behind the bracket, which has to close unless the text is cut.
func (d *reader) tree(c cursor, root *step, whole bool) (values []value, end cursor) {
	frames := []frame{{step: root, key: root}}
	if whole {
		frames[0].key = nil
	}
	start, before := c.offset(), lex.Token{Kind: lex.Newline}
	for ; ; c = c.next() {
		d.work++
		t, ok := c.token()
		if !ok {
			break
		}
		top := &frames[len(frames)-1]
		switch text := c.text(); {
		case t.Kind == lex.Blank, t.Kind == lex.Comment:
			continue
		case t.Kind == lex.Newline:
			if top.valued || top.key == nil {
				top.end()
			}
		case text == "[" && d.Names.PlaceholderLen(d.s[t.Start:]) > 0:
			c = cursor{c.rg, c.rg.cursorAt(int(t.Start)+d.Names.PlaceholderLen(d.s[t.Start:])).i - 1}
			top.valued = true
		case text == "[" && whole && d.hasSections() && len(frames) == 1 && before.Kind == lex.Newline:
			line := d.s[t.Start:lex.LineEnd(d.s, int(t.Start))]
			top.step = root
			for name := range strings.SplitSeq(strings.Trim(line, "[] \t\r\n"), ".") {
				top.step = d.below(top.step, strings.Trim(name, "\"' "))
			}
			c = cursor{c.rg, c.rg.cursorAt(int(t.Start)+len(line)-1).i - 1}
		case text == "{", text == "[", text == "(":
			s := top.key
			if s == nil {
				s = d.labelled(top)
			}
			top.valued = true
			if frames = append(frames, frame{step: s, isList: text != "{", isCall: text == "(" && top.key != nil}); len(frames) > maxNesting {
				return values, c
			}
		case text == "}", text == "]", text == ")":
			if len(frames) > 1 {
				d.bytes(top, &frames[len(frames)-2])
				frames = frames[:len(frames)-1]
			}
			if !whole && len(frames) == 1 {
				return values, c.next()
			}
		case text == ",", text == ";":
			top.end()
		case c.isOperator():
			if top.key == nil && (before.Kind == lex.Name || before.Kind == lex.Literal) {
				top.key, top.valued, top.labels = d.below(top.step, strings.TrimSpace(d.s[before.Inner:before.InnerEnd])), false, nil
			}
		case t.Kind == lex.Name, t.Kind == lex.Literal:
			top.count(t, text)
			if top.key == nil {
				top.labels = append(top.labels, t)
				if c.next().skip(false).isOperator() {
					break
				}
			}
			v := value{path: top.key, lit: literal{int(t.Inner), int(t.InnerEnd), t.Kind == lex.Literal, c.next()}, bind: judge.Assigned}
			if t.Kind == lex.Name {
				if !c.rg.bare || top.key == nil && !top.isList || top.valued {
					break
				}
				v.lit.end = d.bareEndAt(v.lit.start, c.rg.to, len(frames) == 1 && d.hasSections())
				v.lit.next = c.rg.cursorAt(v.lit.end)
				c = cursor{c.rg, v.lit.next.i - 1}
			}
			switch {
			case top.isCall:
				v.path, v.bind = top.step, judge.Fallback
			case top.key == nil:
				v.path, v.bind = d.below(top.step, ""), judge.Item
			case top.valued:
				v.bind = judge.Fallback
			}
			if top.valued = true; v.lit.start < v.lit.end && d.s[before.Start:before.End] != "==" && d.s[before.Start:before.End] != "!=" {
				values = append(values, v)
			}
		}
		before = t
	}
	i := slices.IndexFunc(frames, func(f frame) bool { return f.step.of.Strength == judge.Strong })
	if c.i >= len(c.rg.toks) && c.rg.isText && len(frames) > 1 && i >= 0 {
		if whole && len(values) > 0 {
			start = values[len(values)-1].lit.start
		}
		d.stop(start, frames[i].step.of, "secrets without an end")
	}
	return values, c
}

// maxNesting bounds the brackets and the indentation that are read.
const maxNesting = 1000

// hasSections reports whether a name in brackets at the begin of a line is the heading of a section.
func (d *reader) hasSections() bool { return d.lang.Name == "toml" || d.lang.Name == "ini" }

// end ends a member or element.
func (f *frame) end() { f.key, f.valued, f.labels = nil, false, nil }

// labelled returns the step of a bracket without a key: an element, or a block of HCL with its labels.
func (d *reader) labelled(f *frame) *step {
	s := d.below(f.step, "")
	for i, t := range f.labels {
		if i == 0 {
			s = f.step
		}
		s = d.below(s, d.s[t.Inner:t.InnerEnd])
		if i > 0 && t.Kind == lex.Literal {
			s.label = s.name
		}
	}
	return s
}

// bareEndAt returns the end of the value without quotes at at, which may have blanks if it is the rest of its line.
func (d *reader) bareEndAt(at, to int, isLine bool) int {
	if !isLine {
		return max(at+1, lex.Run(d.s[:to], at, &bareSet, 4<<10))
	}
	line, _, _ := strings.Cut(d.s[at:lex.LineEnd(d.s[:to], at)], " #")
	return at + len(strings.TrimRight(line, " \t\r\n"))
}

var bareSet = bareStops.Complement()

// count counts the numbers of a list of bytes.
func (f *frame) count(t lex.Token, text string) {
	switch {
	case t.Kind == lex.Literal:
	case len(text) <= 18 && (lex.IsDigit(text[0]) || len(text) == 2 && lex.AllIn(text, &lex.HexSet)):
		if f.numbers == 0 {
			f.from = int(t.Start)
		}
		f.numbers += 1 + max(0, len(text)-4)/2
		f.to = int(t.End)
	case !judge.Words("betweenbytes")[text] && text != "u8":
		f.others++
	}
}

// bytes masks the numbers of a list of bytes with the name of a secret, and counts them for the list around it.
func (d *reader) bytes(f, outer *frame) {
	const least = 10
	if n := f.step.own; f.numbers >= least && f.others == 0 && n.Strength >= judge.Medium && !strings.HasSuffix(strings.ToLower(n.Ident), "tokens") {
		d.report(n, inDocument, f.from, f.to)
	}
	if f.numbers > 0 && outer.numbers == 0 {
		outer.from = f.from
	}
	outer.numbers, outer.others, outer.to = outer.numbers+f.numbers, outer.others+f.others, max(outer.to, f.to)
}

// container masks the secrets of the list, map or bytes in brackets at c, whose name is n. It reports whether
// all of the value is read.
func (d *reader) container(n judge.Name, place string, c cursor) bool {
	open, ok := d.opening(c)
	if !ok {
		return false
	}
	if value, ok := d.behindType(open); ok {
		return d.container(n, place, value)
	}
	if open.offset() < d.listEnd {
		return true
	}
	first, _ := open.next().skip(true).token()
	isMap := open.next().skip(true).next().skip(true).isOperator()
	if open.is("{") && c.back().before() == "=>" && !isMap {
		return false // the body of a function
	}
	values, end := d.tree(open, &step{name: n.Ident, own: n, of: n}, false)
	d.listEnd = end.offset()
	d.judgeAll(values, place)
	return !open.is("(") && (first.Kind != lex.Literal || isMap) && open == c
}

// behindType returns the value behind a type in brackets, as in key: [u8; 4] = [1, 2, 3, 4].
func (d *reader) behindType(c cursor) (cursor, bool) {
	const most = 8 // tokens of a type
	for range most {
		if c = c.next(); c.is("]") {
			c = c.next().skip(false)
			return c.next().skip(true), c.is("=")
		}
	}
	return c, false
}

// opening returns the bracket that begins the list, map or bytes at c, behind its type:
// [, []string{, map[string]string{, new byte[] {, byteArrayOf(.
func (d *reader) opening(c cursor) (cursor, bool) {
	const most = 24 // tokens of a type
	at, word := c, ""
	for k := range most {
		t, ok := at.token()
		if !ok || t.Kind == lex.Literal || t.Kind == lex.Newline || t.Kind == lex.Comment {
			return at, false
		}
		text := at.text()
		switch {
		case text == "{", text == "[" && k == 0 && !at.next().is("]"), text == "(" && k == 0:
			return at, k == 0 || c.rg.code || c.rg.outer == nil
		case text == "[" && !at.next().is("]") && word != "" && (judge.Words("bytes")[word] || word == "vec"):
			return at, true
		case text == "(":
			return at, judge.Words("bytes")[word] || judge.Words("collection")[strings.ToLower(word)]
		case t.Kind == lex.Name:
			word = text
		case t.Kind != lex.Blank && strings.Trim(text, "[].*<>,&:!@") != "":
			return at, false
		}
		at = at.next()
	}
	return at, false
}
