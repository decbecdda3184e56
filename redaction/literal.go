package redaction

import (
	"slices"
	"strings"
)

// A literal is a value as it is in the text.
type literal struct {
	start, end int
	quoted     bool
	// next is the offset after the literal and its closing quote.
	next int
}

// text returns the value of a literal.
func (d *detector) text(lit literal) string { return d.s[lit.start:lit.end] }

// literalAt reads a literal, in quotes or bare, also as the argument of a call.
func (d *detector) literalAt(at int, bind binding) (literal, bool) {
	s, i := d.s, at
	for range 3 {
		i = skipLiteralPrefix(s, i)
		if i < len(s) && quoteSet.has(s[i]) {
			if q := severalQuotes(s, i); len(q) == 3 && (bind == spaced || d.closesText(i, q)) {
				return literal{}, false
			}
			lit, ok := quotedAt(s, i)
			if next := byteAt(s, skipBlanks(s, lit.next)); (next == ':' || next == '=') && (byteAt(s, i-1) == '{' || strings.Contains(s[at:i], "{") || s[lineBegin(s, at):at] == s[runBack(s, at, &blankSet, maxGap):at]) {
				return literal{}, false // the name of a member
			}
			return lit, ok
		}
		if open, end := openingAt(s, i); open != "" {
			return delimited(s, i, open, end)
		}
		arg, ok := unwrapCall(s, i)
		if !ok {
			break
		}
		i = arg
	}
	if bind == compared || bind == listed || bind == called {
		return literal{}, false
	}
	return d.bareAt(at, bind)
}

// closesText reports whether the three quotes at i end a text of several lines.
func (d *detector) closesText(i int, quotes string) bool {
	begin := max(0, i-maxKey, strings.LastIndex(d.s[:i], sectionEnd))
	d.work += (i - begin) / 16
	return strings.Count(d.s[begin:i], quotes)%2 == 1
}

// openingAt returns the delimiters of a literal that begins at s[i]: escaped
// quotes, as in JSON within a string, quotes of HTML, CDATA, and the quoting
// operators of Perl and Ruby such as q(...) and %q{...}.
func openingAt(s string, i int) (open, end string) {
	if q := run(s, i, &backslash, 8); q > i && q < len(s) && quoteSet.has(s[q]) {
		return s[i : q+1], s[i : q+1]
	}
	for _, pair := range delimiters {
		if open, end, _ = strings.Cut(pair, "_"); strings.HasPrefix(s[i:], open) {
			return open, end
		}
	}
	return "", ""
}

var delimiters = heads["delimiter"]

// delimited reads the literal between open, at i, and end, which are on one line.
func delimited(s string, i int, open, end string) (literal, bool) {
	start := i + len(open)
	text, _, ok := strings.Cut(s[start:min(len(s), i+maxValue)], end)
	return literal{start, start + len(text), true, start + len(text) + len(end)}, ok && strings.IndexByte(text, '\n') < 0
}

// skipLiteralPrefix skips what may precede a quote: b"x", L"x", @"x", N'x', [ "x".
func skipLiteralPrefix(s string, i int) int {
	j := skipWord(s, i, "_T(")
	j = run(s, j, &literalPrefix, 3)
	if j > i && strings.IndexByte("[{(", s[j-1]) >= 0 {
		j = run(s, j, &spaceSet, maxGap)
	}
	if j < len(s) && quoteSet.has(s[j]) {
		return j
	}
	return i
}

// unwrapCall returns where the argument begins of a call that only converts it.
func unwrapCall(s string, i int) (arg int, ok bool) {
	begin := skipWord(s, i, "new ")
	end := run(s, begin, &calleeSet, maxName)
	if end >= len(s) || s[end] != '(' || end == begin {
		return 0, false
	}
	words := splitWords(s[begin:end])
	if len(words) == 0 {
		return 0, false
	}
	joined := strings.Join(words[max(0, len(words)-2):], "")
	if !lists["wrapper"][lastWord(words)] && !lists["wrapper"][joined] {
		return 0, false
	}
	if joined == "getbytes" {
		words = words[:len(words)-2]
	}
	if slices.ContainsFunc(words, func(w string) bool { return lists["indirect"][w] }) {
		return 0, false
	}
	return run(s, end+1, &spaceSet, maxGap), true
}

// quotedAt reads the literal whose opening quote is at i, to its closing quote
// or, if there is none on the line, to the end of the line.
func quotedAt(s string, i int) (literal, bool) {
	q, end := s[i], min(len(s), i+maxValue)
	if quotes := severalQuotes(s, i); quotes != "" {
		return multiQuotedAt(s, i, quotes)
	}
	for j := i + 1; j < end; j++ {
		switch c := s[j]; {
		case c == q && (j == i+1 || byteAt(s, j+1) != q || !isAlnum(byteAt(s, j+2))):
			return literal{i + 1, j, true, j + 1}, true
		case c == q, c == '\\' && byteAt(s, j+1) != '\n': // a doubled quote
			j++
		case c == '\n' || c == '\r':
			return literal{i + 1, j, true, j}, true
		}
	}
	return literal{i + 1, end, true, end}, true
}

// severalQuotes returns the three double or single quotes, or the two backquotes, at i,
// or "". Three backquotes are a fence of Markdown and no literal.
func severalQuotes(s string, i int) string {
	for _, quotes := range []string{`"""`, "'''", "```", "``"} {
		if strings.HasPrefix(s[i:], quotes) {
			return strings.TrimSuffix(quotes, "```")
		}
	}
	return ""
}

// multiQuotedAt reads the literal in two or three quotes at i, also of several lines.
func multiQuotedAt(s string, i int, quotes string) (literal, bool) {
	start := i + len(quotes)
	if text, _, ok := strings.Cut(s[start:min(len(s), i+maxValue)], quotes); ok && text != "" && !strings.Contains(text, sectionEnd) {
		end := start + len(text)
		return trimLiteral(s, literal{start, end, true, end + len(quotes)}), true
	}
	end := lineEnd(s, start) // its end is not shown
	return trimLiteral(s, literal{start, end, true, end}), end > start
}

// trimLiteral removes blanks and line ends on both sides.
func trimLiteral(s string, lit literal) literal {
	lit.start = run(s, lit.start, &spaceSet, lit.end-lit.start)
	lit.end = runBack(s, lit.end, &spaceSet, lit.end-lit.start)
	return lit
}

// bareAt reads a value without quotes.
func (d *detector) bareAt(at int, bind binding) (literal, bool) {
	s, stops := d.s, bareStops
	switch {
	case bind == element:
		stops = elementStops
	case bind == assigned && wholeLine(s, at):
		stops = spaceSet
	}
	i := at
	for i < len(s) && i-at < maxValue {
		if n := d.placeholderLen(s[i:min(len(s), i+maxPlaceholder)]); n > 0 {
			i += n
			continue
		}
		if stops.has(s[i]) && (s[i] != '&' || nextField(s, i)) && !isArrow(s, i) {
			break
		}
		i++
	}
	if i == at || bind == element && !strings.HasPrefix(s[run(s, i, &spaceSet, maxGap):], "</") {
		return literal{}, false
	}
	return literal{at, i, false, i}, true
}

// isArrow reports whether the > at i is that of ptr->member.
func isArrow(s string, i int) bool {
	return s[i] == '>' && byteAt(s, i-1) == '-' && codeIdent.has(byteAt(s, i+1)) && codeIdent.has(byteAt(s, i-2))
}

// nextField reports whether the & at i begins another field of a query.
func nextField(s string, i int) bool {
	end := run(s, i+1, &identSet, maxName)
	_, n := decodeEntity(s[i:])
	return n > 0 || end == i+1 || byteAt(s, end) == '='
}

// wholeLine reports whether the value at at ends its line, so that it may hold
// any byte but blanks: a short line of a properties file or of the environment.
func wholeLine(s string, at int) bool {
	end, begin := run(s, at, &notBlank, maxLine), lineBegin(s, at)
	if at-begin > maxLine || end < len(s) && s[end] != '\n' && s[end] != '\r' {
		return false
	}
	before, text := s[begin:at], s[at:end]
	if strings.ContainsAny(text, "\"'`<>{") || strings.Contains(text, "}") && strings.Contains(before, "{") || closesCode(before, text) {
		return false
	}
	return !strings.HasSuffix(text, ",") && !strings.HasSuffix(text, ";") && !strings.ContainsAny(before, "\"?")
}

// closesCode reports whether a parenthesis of text is part of the code around it
// and not of a password: it opens in text, or was opened before.
func closesCode(before, text string) bool {
	i := strings.IndexAny(text, "()")
	return i >= 0 && (text[i] == '(' || i+1 == len(text) || !isAlnum(text[i+1]) || strings.Contains(before, "("))
}

// skipClosers skips what may close around a name: quotes, also escaped ones,
// brackets, a brace after a quote.
func skipClosers(s string, i int) int {
	quoted := false
	for begin := i; i < len(s) && i < begin+6; i++ {
		next := byteAt(s, i+1)
		isQuote := quoteSet.has(s[i])
		quoted = quoted || isQuote
		switch c := s[i]; {
		case isQuote, c == ']', c == ')', c == '}' && quoted, c == '*' && i == begin:
		case c == '\\' && (next == c || quoteSet.has(next)), (c == '?' || c == '!') && next == ':':
		default:
			return i
		}
	}
	return i
}

// skipToValue skips blanks, tags, the head of a here document, and at most one
// line end with the indentation after it.
func skipToValue(s string, i int) int {
	i = skipBlanks(s, i)
	for _, head := range []string{"<<", "$(cat <<"} { // a here document
		if strings.HasPrefix(s[i:], head) {
			return skipBlanks(s, lineEndWithin(s, i, maxName))
		}
	}
	j := run(s, i, &blockMarks, 2)
	j = skipWord(s, j, "\\\r\n", "\\\n", "\r\n", "\n") // after a backslash, the value continues
	if next := skipBlanks(s, j); next > j && s[j-1] == '\n' {
		return next
	}
	return i
}
