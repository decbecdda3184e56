package read

import (
	"slices"
	"strings"

	"github.com/criticizer/criticizer/redaction/internal/lex"
)

// A region is the whole text, or what is in a literal or a comment: s[from:to].
type region struct {
	s        string
	toks     []lex.Token
	from, to int
	// outer is the region with the literal toks[at], whose text this region is.
	outer *region
	at    int
	// bare is set if a text without quotes may be a value, code if it is a name of code, data if it is never an
	// expression, isText if the region is the whole text of a file of a known language.
	bare, code, data, isText bool
}

// cursorAt returns the place of the first token that begins at the offset or behind it.
func (rg *region) cursorAt(offset int) cursor {
	i, _ := slices.BinarySearchFunc(rg.toks, offset, func(t lex.Token, at int) int { return int(t.Start) - at })
	return cursor{rg, i}
}

// A cursor is a place between tokens: before rg.toks[i].
type cursor struct {
	rg *region
	i  int
}

// token returns the token behind c. ok is not set at the end of a region or section.
func (c cursor) token() (t lex.Token, ok bool) {
	if c.i >= len(c.rg.toks) || c.rg.toks[c.i].Kind == lex.Break {
		return lex.Token{}, false
	}
	return c.rg.toks[c.i], true
}

// text returns the text of the token behind c, or "".
func (c cursor) text() string {
	if c.i >= len(c.rg.toks) || c.rg.toks[c.i].Kind == lex.Break {
		return ""
	}
	t := &c.rg.toks[c.i]
	return c.rg.s[t.Start:t.End]
}

// is reports whether the token behind c is the mark or word text.
func (c cursor) is(text string) bool {
	return c.text() == text && !c.isKind(lex.Literal)
}

// isKind reports whether the token behind c is of the kind.
func (c cursor) isKind(kind lex.Kind) bool {
	return c.i < len(c.rg.toks) && c.rg.toks[c.i].Kind == kind
}

// isOperator reports whether the token behind c is what stands between a member and its value.
func (c cursor) isOperator() bool {
	switch c.text() {
	case ":", "=>", "=", "->", ":=":
		return c.isKind(lex.Mark)
	}
	return false
}

// before returns the text of the token that ends at c, or "".
func (c cursor) before() string {
	if c.i == 0 {
		return ""
	}
	return cursor{c.rg, c.i - 1}.text()
}

func (c cursor) next() cursor { return cursor{c.rg, c.i + 1} }

// skip skips blanks and comments, and line ends if lines is set.
func (c cursor) skip(lines bool) cursor {
	for toks := c.rg.toks; c.i < len(toks); c.i++ {
		if k := toks[c.i].Kind; k != lex.Blank && k != lex.Comment && !(lines && k == lex.Newline) {
			break
		}
	}
	return c
}

// back is skip before c, also over line ends.
func (c cursor) back() cursor {
	for c.i > 0 {
		if k := c.rg.toks[c.i-1].Kind; k != lex.Blank && k != lex.Comment && k != lex.Newline {
			break
		}
		c.i--
	}
	return c
}

// leave returns the place behind the literal that ends at c.
func (c cursor) leave() (cursor, bool) {
	if c.i < len(c.rg.toks) || c.rg.outer == nil {
		return c, false
	}
	return cursor{c.rg.outer, c.rg.at + 1}, true
}

// offset returns where c is in the text.
func (c cursor) offset() int {
	if c.i < len(c.rg.toks) {
		return int(c.rg.toks[c.i].Start)
	}
	return c.rg.to
}

// closers skips what may close around a name: the end of the literal that it is in, brackets,
// and the brace behind a name in quotes.
func (c cursor) closers() cursor {
	quoted := false
	for n := range 6 {
		if outer, ok := c.leave(); ok {
			c, quoted = outer, true
			continue
		}
		text := c.text()
		if !c.isKind(lex.Mark) || text != "]" && text != ")" && !(text == "}" && quoted) && !(text == "*" && n < 2) && (!lex.QuoteSet.Has(text[0]) || c.rg.code) {
			break
		}
		c = c.next()
	}
	return c
}

// indent returns how far the line of the offset i is indented. The mark of a list item counts.
func indent(s string, i int) int {
	begin := lex.LineBegin(s, i)
	begin += strings.LastIndexByte(s[begin:i], 1) + 1
	end := begin
	for end < i && (s[end] == ' ' || s[end] == '\t' || s[end] == '-' && lex.ByteAt(s, end+1) == ' ') {
		end++
	}
	return end - begin
}
