package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/judge"
	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A tree reads the members and elements in brackets: JSON, HCL, TOML, the sections of INI files, and the lists
// and maps of code.
type tree struct {
	*reader
	// whole is set if the text is read and not one bracket, sections if a name in brackets at the begin of a line
	// is the heading of a section.
	whole, sections bool
	frames          []frame // the open brackets
	values          []value
	before          lex.Token // the last token that is not a blank
}

// A frame is an open bracket.
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

const (
	maxNesting = 1000 // brackets, and levels of indentation
	maxLabels  = 4    // of a block
)

// tree returns the values in the bracket at c, whose step is root, or in the whole text, and what is behind. The
// bracket has to close unless the text is cut.
func (d *reader) tree(c cursor, root *step, whole, sections bool) ([]value, cursor) {
	r := tree{reader: d, whole: whole, sections: sections, frames: []frame{{step: root, key: root}}, before: lex.Token{Kind: lex.Newline}}
	if whole {
		r.frames[0].key = nil
	}
	start := c.offset()
	for ; c.rg != nil; c = c.next() {
		d.work++
		t, ok := c.token()
		switch {
		case !ok || len(r.frames) > maxNesting:
			r.end(c, start)
			return r.values, c
		case t.Kind == lex.Blank, t.Kind == lex.Comment:
			continue
		case t.Kind == lex.Name, t.Kind == lex.Literal:
			c = r.scalar(c, t)
		default:
			if c = r.mark(c, t); !whole && len(r.frames) == 1 && strings.IndexByte("}])", d.s[t.Start]) >= 0 {
				return r.values, c.next()
			}
		}
		r.before = t
	}
	return r.values, c
}

// mark reads a token of the structure at c, and returns the last one that it read.
func (r *tree) mark(c cursor, t lex.Token) cursor {
	top := &r.frames[len(r.frames)-1]
	switch text := c.text(); {
	case t.Kind == lex.Newline && !top.valued && top.key != nil: // the value is on the next line
	case t.Kind == lex.Newline, text == ",", text == ";":
		top.key, top.valued, top.labels = nil, false, nil
	case text == "[" && r.Names.PlaceholderLen(r.s[t.Start:]) > 0:
		top.valued = true
		return cursor{c.rg, c.rg.cursorAt(int(t.Start)+r.Names.PlaceholderLen(r.s[t.Start:])).i - 1}
	case text == "[" && r.sections && len(r.frames) == 1 && r.before.Kind == lex.Newline:
		line := strings.TrimRight(r.s[t.Start:lex.LineEnd(r.s, int(t.Start))], " \t\r\n")
		for top.step.up != nil {
			top.step = top.step.up
		}
		for name := range strings.SplitSeq(strings.Trim(line, "[] "), ".") {
			top.step = r.below(top.step, strings.Trim(name, "\"' "))
		}
		return cursor{c.rg, c.rg.cursorAt(int(t.Start)+len(line)).i - 1}
	case text == "{", text == "[", text == "(":
		s := top.key
		if s == nil {
			s = r.labelled(top)
		}
		top.valued, top.labels = true, nil
		r.frames = append(r.frames, frame{step: s, isList: text != "{", isCall: text == "(" && top.key != nil})
	case (text == "}" || text == "]" || text == ")") && len(r.frames) > 1:
		r.bytes(top, &r.frames[len(r.frames)-2])
		r.frames = r.frames[:len(r.frames)-1]
	case c.isOperator() && top.key == nil && (r.before.Kind == lex.Name || r.before.Kind == lex.Literal):
		top.key, top.valued, top.labels = r.below(top.step, strings.TrimSpace(r.s[r.before.Inner():r.before.InnerEnd()])), false, nil
	}
	return c
}

// scalar reads the name or literal at c: a key, a label, a value. It returns the last token that it read.
func (r *tree) scalar(c cursor, t lex.Token) cursor {
	top := &r.frames[len(r.frames)-1]
	if top.key == nil {
		if len(top.labels) < maxLabels {
			top.labels = append(top.labels, t)
		}
		if c.next().skip(false).isOperator() {
			return c
		}
	}
	if top.key == nil || lex.AllIn(top.key.name, &digitSet) { // the number of a member with another name is not a byte
		top.count(t, c.text())
	}
	v := value{path: top.key, lit: literal{t.Inner(), t.InnerEnd(), t.Kind == lex.Literal, c.next()}, bind: judge.Assigned}
	if t.Kind == lex.Name {
		if !c.rg.bare || top.key == nil && !top.isList || top.valued && !(top.isList && r.inData && r.lang.Kind == lex.Shell) {
			return c
		}
		v.lit.end = r.bareEndAt(v.lit.start, c.rg.to, len(r.frames) == 1 && r.sections)
		v.lit.next = c.rg.cursorAt(v.lit.end)
		c = cursor{c.rg, v.lit.next.i - 1}
	}
	switch {
	case top.isCall:
		v.path, v.bind = top.step, judge.Fallback
	case top.key == nil:
		v.path, v.bind = r.below(top.step, ""), judge.Item
	case top.valued:
		v.bind = judge.Fallback
	}
	if before := r.s[r.before.Start:r.before.End]; v.lit.start < v.lit.end && before != "==" && before != "!=" {
		r.values = append(r.values, v)
	}
	top.valued = true
	return c
}

// end masks and hides the rest of a whole text that ends within secrets.
func (r *tree) end(c cursor, start int) {
	i := slices.IndexFunc(r.frames, func(f frame) bool { return f.step.of.Strength == judge.Strong })
	if c.i < len(c.rg.toks) && len(r.frames) <= maxNesting || !c.rg.isText || len(r.frames) == 1 || i < 0 {
		return
	}
	if r.whole && len(r.values) > 0 {
		start = r.values[len(r.values)-1].lit.start
	}
	r.stop(start, r.frames[i].step.of, noEnd)
}

// labelled returns the step of a bracket without a key: an element, or a block of HCL with its labels.
func (r *tree) labelled(f *frame) *step {
	s := r.below(f.step, "")
	for i, t := range f.labels {
		if i == 0 {
			s = f.step
		}
		s = r.below(s, r.s[t.Inner():t.InnerEnd()])
		if i > 0 && t.Kind == lex.Literal {
			s.label = s.name
		}
	}
	return s
}

// bareEndAt returns the end of the value without quotes at at, which may have blanks if it is the rest of its line.
func (r *tree) bareEndAt(at, to int, isLine bool) int {
	if !isLine {
		return max(at+1, lex.Run(r.s[:to], at, &bareSet, 4<<10))
	}
	line, _, _ := strings.Cut(r.s[at:lex.LineEnd(r.s[:to], at)], " #")
	if value, comment, _ := strings.Cut(line, " ; "); r.lang.Name != "properties" && // which have comments only on lines of their own
		(strings.Contains(comment, " ") || !judge.IsMixed(comment)) { // and a word with a digit is none
		line = value
	}
	return at + len(strings.TrimRight(line, " \t\r\n"))
}

var (
	bareSet  = bareStops.Complement()
	digitSet = lex.SetOf(lex.Digits)
)

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
func (r *tree) bytes(f, outer *frame) {
	const least = 10
	if n := f.step.own; f.numbers >= least && f.others == 0 && n.Strength >= judge.Medium && !strings.HasSuffix(strings.ToLower(n.Ident), "tokens") {
		r.Found = append(r.Found, judge.Span{Start: f.from, End: f.to, Reason: judge.Reason{Class: n.Class(), Rule: n.Rule, Place: inDocument}})
	}
	if f.numbers > 0 && outer.numbers == 0 {
		outer.from = f.from
	}
	outer.numbers, outer.others, outer.to = outer.numbers+f.numbers, outer.others+f.others, max(outer.to, f.to)
}

// container masks the secrets of the list, map or bytes in brackets at c, whose name is n. It reports whether
// all of the value is read.
func container(d *reader, n judge.Name, place string, c cursor) bool {
	open, ok := opening(c)
	if !ok {
		return false
	}
	if open.offset() < d.listEnd {
		return true
	}
	first, _ := open.next().skip(true).token()
	isMap := open.next().skip(true).next().skip(true).isOperator()
	values, end := d.tree(open, &step{name: n.Ident, own: n, of: n}, false, false)
	d.listEnd = end.offset()
	d.judgeAll(values, place)
	return !open.is("(") && (first.Kind != lex.Literal || isMap) && open == c
}

// opening returns the bracket that begins the list, map or bytes at c, behind its type:
// [, []string{, map[string]string{, new byte[] {, byteArrayOf(.
func opening(c cursor) (cursor, bool) {
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
		case text == "[" && (judge.Words("bytes")[word] || word == "vec") && !at.next().is("]"):
			return at, true
		case text == "(":
			return at, judge.Words("bytes")[word] || judge.Words("collection")[strings.ToLower(word)]
		case t.Kind == lex.Name:
			word = text
		case t.Kind != lex.Blank && strings.Trim(text, "[].*<>,&:!@%") != "":
			return at, false
		}
		at = at.next()
	}
	return at, false
}
