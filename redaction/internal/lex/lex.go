// Package lex divides a text into tokens. It is the first step of the reading of a
// text: everything behind it knows whether a place is in a literal, in a comment or in
// code, because the lexer has read the text from its beginning.
//
// [Lex] never fails: it accepts any bytes, takes linear time, and its tokens concatenated are the
// text. languages.txt is the table of languages: comment marks, literals, here documents. A
// text of no known language is read by what most of them agree on.
package lex

import "strings"

// A Kind is the kind of a token.
type Kind uint8

// The kinds of tokens.
const (
	Blank   Kind = iota // blanks
	Newline             // a line end
	Name                // letters, digits and _: an identifier or a number
	Mark                // an operator or any other byte
	Literal             // a text in delimiters
	Comment
	Break // what separates the sections of a view: nothing is read across it
)

// A Token is text[Start:End].
type Token struct {
	Start, End  int32
	Kind        Kind
	open, close uint8 // the lengths of the delimiters of a literal or a comment
}

// Inner and InnerEnd are where what is between the delimiters begins and ends.
func (t Token) Inner() int { return int(t.Start) + int(t.open) }

// InnerEnd is described at Inner.
func (t Token) InnerEnd() int { return int(t.End) - int(t.close) }

// SectionEnd separates the hunks of a diff in the text of one of its sides.
const SectionEnd = "\n\x01\n"

const (
	maxHereDoc = 256 << 10 // how far the end of a here document, or of a literal of an unknown language, is searched
	maxPrefix  = 3         // letters before a quote that belong to the literal
)

// prefixes are the letters that a quote may follow without a blank: b"x", N'x', u8"x".
var prefixes = map[string]bool{"b": true, "r": true, "u": true, "f": true, "l": true, "n": true, "x": true, "rb": true, "br": true, "u8": true, "e": true, "q": true, "c": true, "rf": true, "fr": true, "s": true}

// operators are the operators of several bytes. The longest one counts.
var operators = func() map[string]bool {
	m := map[string]bool{}
	for op := range strings.FieldsSeq(":= => :: ?= += -= ::= :::= ||= ??= :=> ?: !: ==> |= =: -> || ?? == === != !== :- :+ -- ++ && //= <- <> .= ?. <= >= ..") {
		m[op] = true
	}
	return m
}()

var operatorSet = SetOf("=:?+-|!/&<>.")

// class is the kind of the token that a byte begins, if no opener does.
var class = func() (t [256]Kind) {
	for c := range t {
		switch b := byte(c); {
		case b == ' ' || b == '\t' || b == '\r' || b == '\f' || b == '\v':
			t[c] = Blank
		case b == '\n':
			t[c] = Newline
		case CodeIdent.Has(b) || b >= 0x80:
			t[c] = Name
		case b == 1:
			t[c] = Break
		default:
			t[c] = Mark
		}
	}
	return t
}()

// Lex returns the tokens of text[from:to]. An offset of a token is one of text.
func Lex(text string, from, to int, l *Language) []Token {
	return Append(make([]Token, 0, (to-from)/4+4), text, from, to, l)
}

// Append is Lex that appends to tokens.
func Append(tokens []Token, text string, from, to int, l *Language) []Token {
	x := lexer{l: l, out: tokens}
	for at := from; at < to; {
		x.from, x.s = at, text[:to]
		if i := strings.IndexByte(text[at:to], 1); i >= 0 {
			x.s = text[:at+i]
		}
		x.section()
		if at = len(x.s); at < to {
			x.add(Break, at, at+1)
			at++
		}
	}
	return x.out
}

// A lexer reads the section s[from:].
type lexer struct {
	s    string
	l    *Language
	from int
	out  []Token
	// docs are the here documents whose text begins behind the line.
	docs []string
	// absent are delimiters that do not occur again before the offset: the end of a line, or of the section.
	absent map[string]int
	// next is where the first blank or closing delimiter is behind the last literal that may have several lines.
	next map[string]int
	// budget is how many bytes may still be searched in vain for the ends of here documents.
	budget int
}

// section reads tokens up to the end of the section.
func (x *lexer) section() {
	clear(x.absent)
	s := x.s
	x.budget = maxHereDoc + 4*(len(s)-x.from)
	for i := x.from; i < len(s); {
		c := s[i]
		if openers := x.l.openers[c]; openers != nil {
			if end := x.opened(openers, i, i); end > i {
				i = end
				continue
			}
		}
		end, kind := i+1, class[c]
		switch kind {
		case Blank, Name:
			for end < len(s) && class[s[end]] == kind {
				end++
			}
			if kind == Name && end-i <= maxPrefix && end < len(s) && (s[end] == '"' || s[end] == '\'') && prefixes[strings.ToLower(s[i:end])] {
				if after := x.opened(x.l.openers[s[end]], i, end); after > end {
					i = after
					continue
				}
			}
		case Mark:
			if c == '\\' {
				if after := x.escapedQuote(i); after > i {
					i = after
					continue
				}
				if end < len(s) && s[end] != '\n' && s[end] != '\r' {
					end++
				}
			}
			if operatorSet.Has(c) && end < len(s) && operatorSet.Has(s[end]) {
				for end = min(i+4, len(s)); end > i+1 && !operators[s[i:end]]; {
					end--
				}
			}
		}
		x.add(kind, i, end)
		i = end
		if kind == Newline && len(x.docs) > 0 {
			i = x.hereDocs(i)
		}
	}
}

func (x *lexer) add(kind Kind, start, end int) { x.delimited(kind, start, start, end, end) }

// delimited adds a token with delimiters. Texts of 2 GB, whose offsets int32 does not hold, are not read.
func (x *lexer) delimited(kind Kind, start, inner, innerEnd, end int) {
	x.out = append(x.out, Token{int32(start), int32(end), kind, uint8(inner - start), uint8(end - innerEnd)}) //nolint:gosec // below 2 GB
}

// opened adds the literal or comment whose delimiter is at i, if one of openers begins there, and returns its end, or
// i. A literal may have a prefix from start on.
func (x *lexer) opened(openers []opener, start, i int) int {
	for k := range openers {
		o := &openers[k]
		switch {
		case !strings.HasPrefix(x.s[i:], o.open):
			continue
		case o.hereDoc:
			x.hereDoc(i)
			continue
		case o.kind == Comment && !x.comments(o, i), o.kind == Literal && o.loose && !x.quotes(o, start, i):
			continue
		}
		inner := i + len(o.open)
		innerEnd, end := 0, 0
		if o.close == "" {
			end = LineEnd(x.s, i)
			end = RunBack(x.s, end, &lineEndSet, end-i)
			innerEnd = end
		} else if innerEnd, end = x.closing(o, inner); end < 0 {
			continue
		}
		x.delimited(o.kind, start, inner, innerEnd, end)
		return end
	}
	return i
}

var lineEndSet = SetOf("\r\n")

// comments reports whether the opener at i begins a comment where it is.
func (x *lexer) comments(o *opener, i int) bool {
	before, after := byte('\n'), ByteAt(x.s, i+len(o.open))
	if i > x.from {
		before = x.s[i-1]
	}
	line := RunBack(x.s, i, &BlankSet, i-x.from)
	switch {
	case o.isFirst && line > x.from && x.s[line-1] != '\n', o.behindBlank && !SpaceSet.Has(before), o.open == "//" && before == ':': // a URL
		return false
	}
	return !o.beforeBlank || after == 0 || SpaceSet.Has(after) || after == LastByte(o.open)
}

// quotes reports whether the quote at i of a text of no known language opens a literal, whose prefix begins at start.
// An apostrophe does not, nor does a quote that nothing closes, unless it is cut.
func (x *lexer) quotes(o *opener, start, i int) bool {
	after := ByteAt(x.s, i+1)
	isBehindWord := i > x.from && start == i && IsAlnum(x.s[i-1])
	switch o.open[0] {
	case '"': // not the end of a literal whose begin is missing
		return !isBehindWord || after != 0 && strings.IndexByte(":,=)]}; \t\r\n", after) < 0
	case '`':
		return !isBehindWord && (o.open != "`" || !strings.HasPrefix(x.s[i:], "``"))
	case '\'':
		return !isBehindWord && (i == x.from || start < i || x.s[i-1] < 0x80)
	}
	return true
}

// closing returns where the text of a literal or comment from i on ends, and where the token does: -1 if none begins
// here after all.
func (x *lexer) closing(o *opener, i int) (innerEnd, end int) {
	s, q := x.s, o.close
	missing := func() (int, int) {
		if o.loose {
			return 0, -1
		}
		return len(s), len(s)
	}
	if end := x.absent[q]; i < end && o.lines {
		return missing()
	} else if i < end {
		return x.unclosed(o, i, end)
	}
	limit := len(s)
	if o.loose {
		limit = min(limit, i+maxHereDoc)
	}
	for j := i; j < limit; j++ {
		switch c := s[j]; {
		case c == '\n' && !o.lines:
			return x.unclosed(o, i, j)
		case c == '\\' && !o.raw:
			j++
		case c == q[0] && strings.HasPrefix(s[j:limit], q):
			switch {
			case o.doubled && strings.HasPrefix(s[j+len(q):limit], q) && (j > i && !o.loose || IsAlnum(ByteAt(s, j+2*len(q)))):
				j += 2*len(q) - 1
			case len(q) == 3: // """"
				end = Run(s, j+3, &QuoteSet, limit-j-3)
				return end - 3, end
			default:
				return j, j + len(q)
			}
		}
	}
	if !o.lines {
		return x.unclosed(o, i, limit)
	}
	x.setAbsent(q, limit)
	if o.loose && len(q) == 3 && o.kind == Literal {
		return x.unclosed(o, i, LineEnd(s, i))
	}
	return missing()
}

// setAbsent notes that a delimiter does not occur before end.
func (x *lexer) setAbsent(q string, end int) {
	if x.absent == nil {
		x.absent, x.next = map[string]int{}, map[string]int{}
	}
	x.absent[q] = end
}

// unclosed decides on a literal of one line that ends at its line end without a quote: in
// an unknown language it is one only where a value is expected.
func (x *lexer) unclosed(o *opener, i, end int) (innerEnd, after int) {
	x.setAbsent(o.close, end)
	before := strings.TrimRight(x.s[max(x.from, LineBegin(x.s, i)):i-len(o.open)], " \t")
	expected := before != "" && strings.IndexByte("=:(,[{+>", before[len(before)-1]) >= 0
	if o.loose && expected { // a literal of several lines without a blank, such as a key
		if i >= x.next[o.close] {
			stop := min(len(x.s), i+maxHereDoc)
			if n := strings.IndexAny(x.s[i:stop], o.close[:1]+" \t"); n >= 0 {
				stop = i + n
			}
			x.next[o.close] = stop
		}
		if j := x.next[o.close]; ByteAt(x.s, j) == o.close[0] {
			return j, j + 1
		}
	}
	if o.open == "'" || o.open == "`" || (o.loose || x.l.Kind != Code) && before != "" && !expected {
		return 0, -1
	}
	if end > i && x.s[end-1] == '\r' {
		end--
	}
	return end, end
}

// escapedQuote adds the literal in quotes that are escaped, as in JSON within a string: \"x\", and returns its end, or i.
func (x *lexer) escapedQuote(i int) int {
	q := Run(x.s, i, &backslashSet, 16)
	if c := ByteAt(x.s, q); c != '"' && c != '\'' {
		return i
	}
	open := x.s[i : q+1]
	for at := q + 1; ; {
		n := strings.Index(x.s[at:LineEndWithin(x.s, at, maxHereDoc)], open)
		if n < 0 {
			return i
		}
		if at += n + len(open); x.s[at-len(open)-1] != '\\' { // a longer run of backslashes is an escape within
			x.delimited(Literal, i, q+1, at-len(open), at)
			return at
		}
	}
}

var backslashSet = SetOf(`\`)

// hereDoc notes the here document that the << at i announces. A word in small letters may be an operand of a shift:
// it is a here document's where the language has no shift, or behind a mark such as - or a quote.
func (x *lexer) hereDoc(i int) {
	at := Run(x.s, i+2, &hereDocMarks, 4)
	word := x.s[at:Run(x.s, at, &CodeIdent, 40)]
	isMarked := at > i+2 && (x.l.Kind == Code || x.s[i+2] == '-' || x.s[i+2] == '~')
	isOperand := x.s[at-1] == ' ' || x.l.Kind != Shell && x.l.Kind != Script && !isMarked
	if len(word) >= 2 && (IsUpper(word[0]) || !isOperand) {
		x.docs = append(x.docs, word)
	}
}

var hereDocMarks = SetOf("<-~ \"'")

// hereDocs adds the here documents whose text begins at i as literals, and returns where
// the last one ends.
func (x *lexer) hereDocs(i int) int {
	docs := x.docs
	x.docs = nil
	for _, word := range docs {
		begin, limit, found := i, min(len(x.s), i+min(maxHereDoc, x.budget)), false
		for at := begin; at < limit && !found; at = LineEnd(x.s, at) {
			rest, ok := strings.CutPrefix(strings.TrimLeft(x.s[at:LineEnd(x.s, at)], " \t"), word)
			found = ok && (rest == "" || !CodeIdent.Has(rest[0]))
			if found && at > begin {
				x.delimited(Literal, begin, begin, at, at)
				i = at
			}
		}
		if !found {
			x.budget -= limit - begin
		}
	}
	return i
}
