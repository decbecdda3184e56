package redaction

import "strings"

// maxValue bounds a value; a longer one is masked up to here and goes on as
// the next, so nothing is let through.
const maxValue = 4 << 10

// A literal is a value as it stands in the text.
type literal struct {
	start, end int
	quoted     bool
	// next is the offset after the literal and its closing quote.
	next int
}

// value reads what is at s[at], judges it and records it.
func (d *detector) value(n nameRef, l link, at int) {
	if at >= len(d.s) || l == called && d.strengthOf(n.ident[strings.LastIndexByte(n.ident, '.')+1:]) == noName {
		return
	}
	if d.byteList(n, at) {
		return
	}
	lit, ok := d.literalAt(at, l)
	if !ok || lit.start < d.after && lit.end <= d.after {
		return
	}
	if lit.quoted {
		lit = trimmed(d.s, lit)
	}
	text := d.s[lit.start:lit.end]
	if !lit.quoted && l == stated {
		lit.end = lit.start + len(strings.TrimRight(text, ".,;:?)"))
		text = d.s[lit.start:lit.end]
	}
	if !d.isSecret(n, l, lit, text) {
		return
	}
	d.found(classOf(n), "assignment", lit.start, lit.end)
	if n.strength == strongName {
		d.userBefore(n)
	}
}

// userBefore masks the user whose password stands right after: together they
// are what a thief needs.
func (d *detector) userBefore(n nameRef) {
	from := max(0, n.begin-maxUserGap)
	if i := strings.LastIndex(d.s[from:n.begin], sectionEnd); i >= 0 {
		from += i + len(sectionEnd)
	}
	text := strings.ToLower(d.s[from:n.begin])
	for range 3 {
		i := strings.LastIndex(text, "user")
		if i < 0 || d.userAt(n, from, i) {
			return
		}
		text = text[:i]
	}
}

// userAt masks the value of the name at s[from+i], if it is one, and reports so.
func (d *detector) userAt(n nameRef, from, i int) bool {
	text := strings.ToLower(d.s[from:n.begin])
	end := run(d.s, from+i, &identSet, maxName)
	if strings.HasPrefix(text[min(len(text), end-from):], " id") {
		end += 3
	}
	l, at := d.linkAfter(from+i, end)
	if l != assigned && l != spaced && l != paired || at >= n.begin {
		return false
	}
	lit, ok := d.literalAt(at, l)
	if !ok || lit.end > n.begin || lit.end-lit.start < 2 {
		return false
	}
	if name := d.s[lit.start:lit.end]; !isPlaceholder(name) && !standsFor(name) && !isSource(name) && !isProse(name) && (lit.quoted || l == spaced || wholeLine(d.s, at) || inConnectionString(d.s, lit.end)) {
		d.found("username", "user of a password", lit.start, lit.end)
		return true
	}
	return false
}

// maxUserGap is how far a user may stand before the name of its password.
const maxUserGap = 160

// classOf names what is masked after the name that told of it.
func classOf(n nameRef) string {
	folded := strings.ToLower(n.ident)
	for _, c := range []struct{ stem, class string }{{"pass", "password"}, {"pwd", "password"}, {"pw", "password"}, {"secret", "secret"}, {"token", "token"}, {"key", "key"}} {
		if strings.Contains(folded, c.stem) {
			return c.class
		}
	}
	if n.strength == strongName {
		return "password"
	}
	return "credential"
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
		if i+1 < len(s) && s[i] == '\\' && quoteSet.has(s[i+1]) {
			return escapedAt(s, i)
		}
		if i < len(s) && s[i] == '&' && strings.HasPrefix(s[i:], "&quot;") {
			return entityAt(s, i)
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
	return d.bareAt(at, l)
}

// skipLiteralPrefix skips what stands before a quote: b"x", L"x", @"x", N'x', [ "x".
func skipLiteralPrefix(s string, i int) int {
	j := i
	for j < len(s) && j-i < 3 && strings.IndexByte("bruflnBRUFLN@$[{(&*", s[j]) >= 0 {
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
	if len(words) == 0 {
		return 0, false
	}
	joined := strings.Join(words[max(0, len(words)-2):], "")
	if !lists["wrapper"][words[len(words)-1]] && !lists["wrapper"][joined] {
		return 0, false
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
	s = s[:i+sectionLen(s[i:min(len(s), i+maxValue)])]
	if strings.HasPrefix(s[i:], `"""`) || strings.HasPrefix(s[i:], "'''") || strings.HasPrefix(s[i:], "``") && !strings.HasPrefix(s[i:], "```") {
		n := run(s, i, &quoteSet, 3) - i
		if end := strings.Index(s[i+n:min(len(s), i+maxValue)], s[i:i+n]); end > 0 {
			return trimmed(s, literal{i + n, i + n + end, true, i + n + end + n}), true
		}
		if n == 2 || n == 3 {
			return literal{i + n, i + n, true, i + n}, false
		}
	}
	for j := i + 1; j < len(s) && j-i < maxValue; j++ {
		switch c := s[j]; {
		case c == q:
			return literal{i + 1, j, true, j + 1}, true
		case c == '\\' && j+1 < len(s) && s[j+1] != '\n':
			j++
		case c == '\n' || c == '\r' && q != '`':
			return literal{i + 1, j, true, j}, true
		}
	}
	return literal{i + 1, min(len(s), i+maxValue), true, min(len(s), i+maxValue)}, true
}

// sectionLen is the length of what s begins with up to the end of its section.
func sectionLen(s string) int {
	if i := strings.Index(s, sectionEnd); i >= 0 {
		return i
	}
	return len(s)
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

// escapedAt reads a literal between escaped quotes, as in JSON within a string.
func escapedAt(s string, i int) (literal, bool) {
	end := strings.Index(s[i+2:min(len(s), i+maxValue)], s[i:i+2])
	if end < 0 || strings.IndexByte(s[i+2:i+2+end], '\n') >= 0 {
		return literal{}, false
	}
	return literal{i + 2, i + 2 + end, true, i + 4 + end}, true
}

// entityAt reads a literal between HTML quotes.
func entityAt(s string, i int) (literal, bool) {
	const q = "&quot;"
	end := strings.Index(s[i+len(q):min(len(s), i+maxValue)], q)
	if end < 0 || strings.Contains(s[i:i+len(q)+end], sectionEnd) {
		return literal{}, false
	}
	return literal{i + len(q), i + len(q) + end, true, i + 2*len(q) + end}, true
}

// bareAt reads a value without quotes.
func (d *detector) bareAt(at int, l link) (literal, bool) {
	s := d.s
	stops := bareStops
	switch {
	case l == element:
		stops = elementStops
	case l == assigned && wholeLine(s, at):
		stops = lineStops
	}
	i := at
	for i < len(s) && i-at < maxValue {
		if s[i] == '[' {
			if n := placeholderLen(s[i:]); n > 0 {
				i += n
				continue
			}
		}
		if stops.has(s[i]) && (s[i] != '&' || nextField(s, i)) {
			break
		}
		i++
	}
	if i == at || l == element && !strings.HasPrefix(s[run(s, i, &spaceSet, maxGap):], "</") {
		return literal{}, false
	}
	return literal{at, i, false, i}, true
}

// nextField reports whether the & at i begins another field of a query rather
// than being part of a value.
func nextField(s string, i int) bool {
	end := run(s, i+1, &identSet, maxName)
	if _, n := decodeEntity(s[i:]); n > 0 {
		return true
	}
	return end == i+1 || end < len(s) && s[end] == '='
}

var (
	bareStops    = setOf(" \t\r\n\"'`;,&<>(){}[]|")
	elementStops = setOf("<\r\n")
	lineStops    = setOf(" \t\r\n")
)

// wholeLine reports whether the value at at ends its line, so that it may hold
// any byte but blanks: a line of a properties file or of the environment.
func wholeLine(s string, at int) bool {
	end := run(s, at, &notBlank, 256)
	if end >= len(s) || s[end] == '\n' || s[end] == '\r' {
		return strings.IndexAny(s[at:end], "()\"'`<>{") < 0 && !(strings.HasSuffix(s[at:end], "}") && strings.IndexByte(s[lineBegin(s, at):at], '{') >= 0) && !strings.HasSuffix(s[at:end], ",") && !strings.HasSuffix(s[at:end], ";") &&
			strings.IndexByte(s[max(0, lineBegin(s, at)):at], '"') < 0 && strings.IndexByte(s[max(0, lineBegin(s, at)):at], '?') < 0
	}
	return false
}

func lineBegin(s string, i int) int {
	from := max(0, i-512)
	return from + strings.LastIndexByte(s[from:i], '\n') + 1
}

var notBlank = func() (s charset) {
	for c := range 256 {
		if c != ' ' && c != '\t' && c != '\n' && c != '\r' {
			s[c>>6] |= 1 << (c & 63)
		}
	}
	return s
}()

// byteList masks the bytes of a key that is written as a list of numbers.
func (d *detector) byteList(n nameRef, at int) bool {
	s := d.s
	open := strings.IndexAny(s[at:min(len(s), at+40)], "{[(\n;=\"'")
	for open >= 0 && at+open+1 < len(s) && s[at+open] == '[' && s[at+open+1] == ']' {
		more := strings.IndexAny(s[at+open+2:min(len(s), at+open+24)], "{[(\n;=\"'")
		if more < 0 {
			return false
		}
		open += 2 + more
	}
	if open < 0 || strings.IndexByte("{[", s[at+open]) < 0 {
		return false
	}
	begin := run(s, at+open+1, &spaceSet, maxGap)
	end, numbers := begin, 0
	for end < len(s) && end-begin < maxValue {
		stop := run(s, end, &hexNumSet, 5)
		if stop == end || !isDigit(s[end]) {
			break
		}
		numbers++
		end = stop
		next := run(s, end, &listGap, maxGap)
		if next == end || next >= len(s) || !isDigit(s[next]) {
			break
		}
		end = next
	}
	if numbers < 10 || n.strength < mediumName || strings.HasSuffix(strings.ToLower(n.ident), "tokens") {
		return false
	}
	d.found(classOf(n), "byte list", begin, end)
	return true
}

var (
	hexNumSet = setOf(digits, "abcdefABCDEFxX")
	listGap   = setOf(", \t\r\n")
)
