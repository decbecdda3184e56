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

// A Token is text[Start:End]. Of a literal or a comment, text[Inner:InnerEnd] is what is
// between its delimiters.
type Token struct {
	Kind Kind
	// Cut is set if the end delimiter is missing.
	Cut                         bool
	Start, End, Inner, InnerEnd int32
}

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
	x := lexer{s: text[:to], l: l, out: tokens, absent: map[string]int{}, open: map[string]int{}}
	for at := from; at < to; {
		x.from, x.to = at, to
		if i := strings.IndexByte(text[at:to], 1); i >= 0 {
			x.to = at + i
		}
		x.section()
		if at = x.to; at < to {
			x.out = append(x.out, Token{Kind: Break, Start: offset(at), End: offset(at + 1)})
			at++
		}
	}
	return x.out
}

// A lexer reads the section s[from:to].
type lexer struct {
	s        string
	l        *Language
	from, to int
	out      []Token
	// docs are the here documents whose text begins behind the line.
	docs []string
	// absent are delimiters that do not occur again in the section, from the offset on, open those
	// that do not occur up to the offset, which is a line end.
	absent, open map[string]int
	// budget is how many bytes may still be searched in vain for the ends of here documents.
	budget int
}

// section reads tokens up to the end of the section.
func (x *lexer) section() {
	clear(x.absent)
	clear(x.open)
	x.budget = maxHereDoc + 4*(x.to-x.from)
	s := x.s[:x.to]
	for i := x.from; i < x.to; {
		c := s[i]
		if openers := x.l.openers[c]; openers != nil {
			if end := x.opened(openers, i); end > i {
				i = end
				continue
			}
		}
		end := i + 1
		kind := class[c]
		switch kind {
		case Blank, Name:
			for end < x.to && class[s[end]] == kind {
				end++
			}
			if kind == Name && end-i <= maxPrefix && end < x.to && (s[end] == '"' || s[end] == '\'') && prefixes[strings.ToLower(s[i:end])] {
				if after := x.opened(x.l.openers[s[end]], end); after > end {
					x.out[len(x.out)-1].Start = offset(i)
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
				if end < x.to && s[end] != '\n' && s[end] != '\r' {
					end++
				}
			}
			if operatorSet.Has(c) && end < x.to && operatorSet.Has(s[end]) {
				for end = min(i+4, x.to); end > i+1 && !operators[s[i:end]]; {
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

// offset returns i as a token holds it: texts of 2 GB are not read.
func offset(i int) int32 { return int32(i) } //nolint:gosec // i is below 2 GB

func (x *lexer) add(kind Kind, start, end int) {
	x.out = append(x.out, Token{Kind: kind, Start: offset(start), End: offset(end), Inner: offset(start), InnerEnd: offset(end)})
}

// opened adds the literal or comment that begins at i, if one of openers does, and returns its
// end, or i.
func (x *lexer) opened(openers []opener, i int) int {
	for k := range openers {
		o := &openers[k]
		if !strings.HasPrefix(x.s[i:x.to], o.open) && !(o.kind == Comment && len(o.open) == 3 && strings.EqualFold(x.s[i:min(i+3, x.to)], o.open)) {
			continue
		}
		if o.hereDoc {
			x.hereDoc(i)
			continue
		}
		if o.kind == Comment && !x.comments(o, i) || o.kind == Literal && o.loose && !x.quotes(o, i) {
			continue
		}
		inner, end, innerEnd, cut := i+len(o.open), 0, 0, false
		if o.kind == Comment && o.close == "" {
			end = LineEnd(x.s[:x.to], i)
			end -= len(x.s[i:end]) - len(strings.TrimRight(x.s[i:end], "\r\n"))
			innerEnd = end
		} else if innerEnd, end, cut = x.closing(o, inner); end < 0 {
			continue
		}
		x.out = append(x.out, Token{o.kind, cut, offset(i), offset(end), offset(inner), offset(innerEnd)})
		return end
	}
	return i
}

// comments reports whether the opener at i begins a comment where it is. A mark that code
// also has counts at the begin of a line or behind a blank.
func (x *lexer) comments(o *opener, i int) bool {
	before, after := byte('\n'), ByteAt(x.s[:x.to], i+len(o.open))
	if i > x.from {
		before = x.s[i-1]
	}
	line := RunBack(x.s, i, &BlankSet, i-x.from)
	atBegin := line == x.from || x.s[line-1] == '\n'
	blank := before == ' ' || before == '\t' || before == '\n'
	switch {
	case IsAlnum(o.open[0]) || o.open == "::" || o.open[0] == '=': // rem, =pod
		return atBegin && (!IsAlnum(o.open[0]) || !IsAlnum(after))
	case o.open == ";" || o.open == "%":
		return atBegin || x.l.Kind == Code
	case o.open == "'":
		return true
	case x.l.Kind == Markup || o.close != "" && !o.loose:
		return true
	case o.open == "#" && (o.loose || x.l.Kind != Code):
		return blank && !(o.loose && !atBegin && after != ' ') && (!o.loose || after == ' ' || after == '#' || after == '\n' || after == '\t')
	case o.open == "--" && (o.loose || x.l.Kind == Shell):
		return blank && (after == ' ' || after == '\n' || after == '\r' || after == 0 || after == '-' && !o.loose)
	case o.open == "//":
		return before != ':' && (!o.loose || blank && strings.IndexByte(" \t\r\n\x00/", after) >= 0)
	}
	return true
}

// quotes reports whether the quote at i of a text of no known language opens a literal. An
// apostrophe does not, nor does a quote that nothing closes, unless it is cut.
func (x *lexer) quotes(o *opener, i int) bool {
	if o.open[0] == '<' {
		return true
	}
	if i > x.from && o.open[0] != '"' && (IsAlnum(x.s[i-1]) && !x.prefixed(i) || x.s[i-1] >= 0x80) {
		return false
	}
	after := ByteAt(x.s[:x.to], i+1)
	if o.open == `"` && i > x.from && IsAlnum(x.s[i-1]) && !x.prefixed(i) && (strings.IndexByte(":,=)]}; \t\r\n", after) >= 0 || after == 0) {
		return false // the end of a literal whose begin is missing
	}
	return o.open != "`" || !strings.HasPrefix(x.s[i:x.to], "``")
}

// prefixed reports whether the letters before i are a prefix of a literal, which the lexer reads now.
func (x *lexer) prefixed(i int) bool {
	begin := RunBack(x.s, i, &AlnumSet, maxPrefix+1)
	return prefixes[strings.ToLower(x.s[begin:i])] && (len(x.out) == 0 || int(x.out[len(x.out)-1].End) <= begin)
}

// closing returns where the text of a literal or comment from i on ends and where the token does.
// end is -1 if it does not begin here after all. cut is set if the end is missing.
func (x *lexer) closing(o *opener, i int) (innerEnd, end int, cut bool) {
	s, q := x.s[:x.to], o.close
	if since, ok := x.absent[q]; ok && i >= since && o.lines {
		if o.loose {
			return 0, -1, false
		}
		return x.to, x.to, true
	}
	if !o.lines && i < x.open[q] && (q == "'" || q == "`") {
		return 0, -1, false
	}
	limit := x.to
	if o.loose {
		limit = min(limit, i+maxHereDoc)
	}
	for j := i; j < limit; j++ {
		switch c := s[j]; {
		case c == '\n' && !o.lines:
			return x.unclosed(o, i, j)
		case c == '\\' && !o.raw:
			if j+1 < limit && s[j+1] == '\n' && !o.lines && x.l.Kind != Code && x.l.Kind != Shell {
				return x.unclosed(o, i, j)
			}
			j++
		case c == q[0] && strings.HasPrefix(s[j:limit], q):
			after, isText := x.closes(o, i, j, limit)
			if after < 0 {
				return 0, -1, false
			} else if !isText {
				return after - len(q), after, false
			}
			j = after - 1
		}
	}
	if !o.lines {
		return x.unclosed(o, i, limit)
	}
	x.absent[q] = i
	if o.loose && len(q) == 3 && o.kind == Literal {
		return x.unclosed(o, i, LineEnd(s, i))
	}
	if o.loose {
		return 0, -1, false
	}
	return x.to, x.to, true
}

// closes returns what is behind the delimiter at j of a text from i on, or -1 if the text does not begin at i after
// all. isText is set if the delimiter is a part of the text.
func (x *lexer) closes(o *opener, i, j, limit int) (after int, isText bool) {
	s, q := x.s[:x.to], o.close
	next := ByteAt(s, j+len(q))
	switch {
	case o.doubled && strings.HasPrefix(s[j+len(q):limit], q) && (j > i && !o.loose || IsAlnum(ByteAt(s, j+2*len(q)))):
		return j + 2*len(q), true
	case o.loose && q == `"` && IsAlnum(next) && j > i && strings.Trim(s[i:j], "{[( ") == "": // a text in quotes that holds quotes
		return -1, false
	case o.loose && q == "'" && IsAlnum(next) && j > i && IsAlnum(s[j-1]): // an apostrophe in the text
		return j + 1, true
	case len(q) == 3: // """"
		return Run(s, j+3, &QuoteSet, limit-j-3), false
	}
	return j + len(q), false
}

// unclosed decides on a literal of one line that ends at its line end without a quote: in
// an unknown language it is one only where a value is expected.
func (x *lexer) unclosed(o *opener, i, end int) (innerEnd, after int, cut bool) {
	x.open[o.close] = end
	before := strings.TrimRight(x.s[max(x.from, LineBegin(x.s, i)):i-len(o.open)], " \t")
	expected := before != "" && strings.IndexByte("=:(,[{+>", before[len(before)-1]) >= 0
	if o.loose && expected { // a literal of several lines without a blank, such as a key
		j := i
		for j < min(x.to, i+maxHereDoc) && x.s[j] != o.close[0] && x.s[j] != ' ' && x.s[j] != '\t' {
			j++
		}
		if j < x.to && x.s[j] == o.close[0] {
			return j, j + 1, false
		}
	}
	if o.open == "'" || o.open == "`" {
		return 0, -1, false
	}
	if o.loose || x.l.Kind != Code {
		if before != "" && !expected {
			return 0, -1, false
		}
	}
	if end > i && x.s[end-1] == '\r' {
		end--
	}
	return end, end, true
}

// escapedQuote adds the literal in quotes that are escaped, as in JSON within a string: \"x\".
func (x *lexer) escapedQuote(i int) int {
	s := x.s[:x.to]
	q := i
	for q < len(s) && s[q] == '\\' && q-i < 16 {
		q++
	}
	if q >= len(s) || s[q] != '"' && s[q] != '\'' {
		return i
	}
	open := s[i : q+1]
	rest := s[q+1 : LineEndWithin(s, q, maxHereDoc)]
	n := strings.Index(rest, open)
	if n < 0 {
		return i
	}
	for n > 0 && rest[n-1] == '\\' { // a longer run of backslashes is an escape within
		k := strings.Index(rest[n+len(open):], open)
		if k < 0 {
			return i
		}
		n += len(open) + k
	}
	x.out = append(x.out, Token{Literal, false, offset(i), offset(q + 1 + n + len(open)), offset(q + 1), offset(q + 1 + n)})
	return q + 1 + n + len(open)
}

// hereDoc notes the here document that the << at i announces.
func (x *lexer) hereDoc(i int) {
	s := x.s[:x.to]
	at := i + 2
	for at < len(s) && strings.IndexByte("<-~ \"'", s[at]) >= 0 && at-i < 6 {
		at++
	}
	end := Run(s, at, &CodeIdent, 40)
	word := s[at:end]
	if len(word) >= 2 && IsUpper(word[0]) || len(word) >= 2 && s[at-1] != ' ' && x.l.Kind == Shell {
		x.docs = append(x.docs, word)
	}
}

// hereDocs adds the here documents whose text begins at i as literals, and returns where
// the last one ends.
func (x *lexer) hereDocs(i int) int {
	docs := x.docs
	x.docs = nil
	for _, word := range docs {
		limit := min(x.to, i+min(maxHereDoc, x.budget))
		begin := i
		for at := i; at < limit; at = LineEnd(x.s[:x.to], at) {
			line := strings.Trim(x.s[at:LineEnd(x.s[:x.to], at)], " \t\r\n")
			if rest, ok := strings.CutPrefix(line, word); ok && (rest == "" || !IsAlnum(rest[0]) && rest[0] != '_') {
				x.out = append(x.out, Token{Literal, false, offset(i), offset(at), offset(i), offset(at)})
				i = at
				break
			}
		}
		if i == begin {
			x.budget -= limit - begin
		}
	}
	return i
}
