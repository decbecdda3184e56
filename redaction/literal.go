package redaction

import "strings"

// A literal is a value as it stands in the text.
type literal struct {
	start, end int
	quoted     bool
	// next is the offset after the literal and its closing quote.
	next int
}

// literalAt reads a literal, in quotes or bare, within a wrapping call or not.
func (d *detector) literalAt(at int, l link) (literal, bool) {
	s := d.s
	i := at
	for range 3 {
		i = skipLiteralPrefix(s, i)
		if i < len(s) && quoteSet.has(s[i]) {
			return quotedAt(s, i)
		}
		if q := run(s, i, &backslash, 8); q > i && q < len(s) && quoteSet.has(s[q]) {
			return between(s, i, s[i:q+1], s[i:q+1])
		}
		if l == element && strings.HasPrefix(s[i:], cdata) {
			return between(s, i, cdata, "]]>")
		}
		if open, end := quoteLike(s[i:]); open != "" {
			return between(s, i, open, end)
		}
		if i < len(s) && s[i] == '&' && strings.HasPrefix(s[i:], "&quot;") {
			return between(s, i, "&quot;", "&quot;")
		}
		arg, ok := wrapped(s, i)
		if !ok {
			break
		}
		i = arg
	}
	switch l {
	case compared, listed, called:
		return literal{}, false
	}
	if n := run(s, at, &digitSet, 6); n > at && n+1 < len(s) && s[n] == '\'' && foldByte(s[n+1]) == 'h' { // a number of a hardware language
		end := run(s, n+2, &hdlSet, maxValue)
		return literal{n + 2, end, true, end}, end > n+2
	}
	return d.bareAt(at, l)
}

// skipLiteralPrefix skips what stands before a quote: b"x", L"x", @"x", N'x', [ "x".
func skipLiteralPrefix(s string, i int) int {
	j := i
	for j < len(s) && j-i < 3 && strings.IndexByte("bruflnxBRUFLNX@$[{(&*#", s[j]) >= 0 {
		j++
		if j < len(s) && (s[j-1] == '[' || s[j-1] == '{' || s[j-1] == '(') {
			j = run(s, j, &spaceSet, maxGap)
		}
	}
	if j < len(s) && quoteSet.has(s[j]) {
		return j
	}
	return i
}

// wrapped returns where the argument of a wrapping call at i begins.
func wrapped(s string, i int) (arg int, ok bool) {
	begin := i
	if strings.HasPrefix(s[i:], "new ") {
		begin += 4
	}
	end := run(s, begin, &calleeSet, maxName)
	if end >= len(s) || s[end] != '(' || end == begin {
		return 0, false
	}
	words := splitWords(s[begin:end])
	if s[begin:end] == "_T" {
		words = []string{"text"}
	}
	if len(words) == 0 {
		return 0, false
	}
	joined := strings.Join(words[max(0, len(words)-2):], "")
	if !lists["wrapper"][words[len(words)-1]] && !lists["wrapper"][joined] {
		return 0, false
	}
	if joined == "getbytes" {
		words = words[:len(words)-2]
	}
	for _, w := range words {
		switch w {
		case "get", "env", "getenv", "lookup", "load", "read", "fetch":
			return 0, false
		}
	}
	return run(s, end+1, &spaceSet, maxGap), true
}

var calleeSet = setOf(digits, letters, "_.:[]<>")

// quotedAt reads the literal whose opening quote is at i, to its closing quote
// or, if there is none on the line, to the line's end.
func quotedAt(s string, i int) (literal, bool) {
	q := s[i]
	if strings.HasPrefix(s[i:], `"""`) || strings.HasPrefix(s[i:], "'''") || strings.HasPrefix(s[i:], "``") && !strings.HasPrefix(s[i:], "```") {
		n := run(s, i, &quoteSet, 3) - i
		if end := strings.Index(s[i+n:min(len(s), i+maxValue)], s[i:i+n]); end > 0 && !strings.Contains(s[i:i+n+end], sectionEnd) {
			return trimmed(s, literal{i + n, i + n + end, true, i + n + end + n}), true
		}
		if n == 3 { // its end is not shown
			end := i + n + len(strings.TrimRight(s[i+n:lineEnd(s, i+n)], "\r\n"))
			return trimmed(s, literal{i + n, end, true, end}), end > i+n
		}
		return literal{}, false
	}
	for j := i + 1; j < len(s) && j-i < maxValue; j++ {
		switch c := s[j]; {
		case c == q && j > i+1 && j+2 < len(s) && s[j+1] == q && isAlnum(s[j+2]):
			j++ // a quote that is doubled
		case c == q:
			return literal{i + 1, j, true, j + 1}, true
		case c == '\\' && j+1 < len(s) && s[j+1] != '\n':
			j++
		case c == '\n' && (q != '`' || strings.HasPrefix(s[j:], sectionEnd)), c == '\r' && q != '`':
			return literal{i + 1, j, true, j}, true
		}
	}
	return literal{i + 1, min(len(s), i+maxValue), true, min(len(s), i+maxValue)}, true
}

func trimmed(s string, l literal) literal {
	for l.start < l.end && spaceSet.has(s[l.start]) {
		l.start++
	}
	for l.start < l.end && spaceSet.has(s[l.end-1]) {
		l.end--
	}
	return l
}

var hdlSet = setOf(digits, "abcdefABCDEF_")

const cdata = "<![CDATA["

var backslash = setOf("\\")

// quoteLike are the marks around a literal of Perl or Ruby that s begins with:
// q(...), %q{...}.
func quoteLike(s string) (open, end string) {
	for _, word := range []string{"q", "qq", "%q", "%Q", "%"} {
		if rest, ok := strings.CutPrefix(s, word); ok && rest != "" {
			if i := strings.IndexByte("({[", rest[0]); i >= 0 {
				return s[:len(word)+1], ")}]"[i : i+1]
			}
		}
	}
	return "", ""
}

// between reads the literal between open, which is at i, and end: escaped
// quotes, as in JSON within a string, quotes of HTML and others. It ends on its
// line.
func between(s string, i int, open, end string) (literal, bool) {
	start := i + len(open)
	n := strings.Index(s[start:min(len(s), i+maxValue)], end)
	if n < 0 || strings.IndexByte(s[start:start+n], '\n') >= 0 {
		return literal{}, false
	}
	return literal{start, start + n, true, start + n + len(end)}, true
}
