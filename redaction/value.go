package redaction

import "strings"

// maxValue bounds a value; a longer one is masked up to here and goes on as
// the next, so nothing is let through.
const maxValue = 4 << 10

// value reads what is at s[at], judges it and records it.
func (d *detector) value(n nameRef, l link, at int) {
	if at >= len(d.s) || l == called && d.strengthOf(n.ident[strings.LastIndexByte(n.ident, '.')+1:]) == noName {
		return
	}
	if d.registry(n, at) || d.byteList(n, at) || d.charList(n, at) {
		return
	}
	if (l == assigned || l == fallback) && (n.strength >= mediumName || isPairName(n.ident)) {
		d.list(n, at)
		d.choices(n, at)
	}
	l, at = d.valueBegin(n, l, at)
	if at < 0 {
		return
	}
	at = d.innerValue(at)
	lit, ok := d.literalAt(at, l)
	if !ok || lit.start < d.after && lit.end <= d.after {
		return
	}
	lit = d.bounded(n, l, lit)
	text := d.s[lit.start:lit.end]
	if (lit.quoted && l == assigned || human(text)) && strings.EqualFold(n.ident, "pwd") {
		n.strength = strongName // a directory would not be in quotes, or look like one
	}
	if d.values.crowded(lit.start, lit.end) {
		d.unseen(classOf(n), lit.start, lit.end)
		return
	}
	if !d.isSecret(n, l, lit, text) {
		d.userAndPassword(n, lit)
		return
	}
	d.found(classOf(n), "assignment", lit.start, lit.end)
	d.continued(n, lit)
	if n.strength == strongName {
		d.userBefore(n)
		d.mailServerBefore(n)
	}
}

// bounded is the value that the literal at lit is part of, without what is prose
// around it.
func (d *detector) bounded(n nameRef, l link, lit literal) literal {
	if lit.quoted {
		lit = trimmed(d.s, lit)
	}
	if end, ok := d.phraseLine(n, l, lit); ok {
		lit.end = end
	}
	if !lit.quoted && l == stated {
		lit.end = lit.start + len(strings.TrimRight(d.s[lit.start:lit.end], ".,;:?)"))
	}
	return lit
}

// userAndPassword masks the password of a value such as bob:password.
func (d *detector) userAndPassword(n nameRef, lit literal) {
	user, password, ok := strings.Cut(d.s[lit.start:lit.end], ":")
	if ok && isPairName(n.ident) && isIdentifier(user) && isMixed(password) && isArgument(password) {
		d.found("password", "user and password", lit.end-len(password), lit.end)
	}
}

// valueBegin is where the value begins that is tied by l to n, behind what may
// stand before it at at, and how it is tied; -1 if there is none.
func (d *detector) valueBegin(n nameRef, l link, at int) (link, int) {
	if l == called && n.strength >= mediumName {
		if value, ok := d.returned(at - 1); ok {
			l, at = assigned, value
		}
	}
	rest := d.s[at:min(len(d.s), at+maxName)]
	switch {
	case strings.HasPrefix(rest, "${"): // ${1:-value} stands for an argument that is not there
		if i := strings.Index(rest, ":-"); i > 0 && !strings.ContainsAny(rest[:i], "}\n") {
			return fallback, at + i + len(":-")
		}
	case strings.HasPrefix(rest, "return "): // the branch of a switch
		if at = gap(d.s, at+len("return ")); at >= len(d.s) || !quoteSet.has(d.s[at]) {
			return l, -1
		}
	case l == spaced && strings.HasPrefix(rest, "--") && lists["directive"][n.ident]:
		return l, gap(d.s, run(d.s, at, &wordSet, maxName))
	case l == spaced:
		return l, afterType(d.s, at)
	case l == assigned && endsFold(n.ident, "authorization"):
		if end := run(d.s, at, &letterSet, maxName); end > at && end+1 < len(d.s) && d.s[end] == ' ' && isAlnum(d.s[end+1]) {
			return l, end + 1 // after the name of a scheme
		}
	}
	return l, at
}

// innerValue is where the value begins that stands within what is at at: the
// default of a template, what a function of one expression returns.
func (d *detector) innerValue(at int) int {
	s := d.s
	if at >= len(s) || s[at] != '(' && !quoteSet.has(s[at]) && s[at] != '{' {
		return at
	}
	if rest, ok := strings.CutPrefix(s[at:], "() =>"); ok {
		return gap(s, len(s)-len(rest))
	}
	if i := run(s, at, &quoteSet, 1); strings.HasPrefix(s[i:], "{{") {
		line := s[i:lineEndWithin(s, i, maxChoice)]
		if n := strings.Index(line, "default("); n > 0 && !strings.Contains(line[:n], "}}") {
			return i + n + len("default(")
		}
	}
	return at
}

// phraseLine is the end of a passphrase without quotes whose first word is lit:
// that of the line of configuration that its name begins.
func (d *detector) phraseLine(n nameRef, l link, lit literal) (end int, ok bool) {
	if lit.quoted || l != assigned || n.strength < strongName || lit.end >= len(d.s) || d.s[lit.end] != ' ' || !n.isPassword() {
		return 0, false
	}
	begin := lineBegin(d.s, n.begin)
	if strings.Trim(d.s[begin:n.begin], " \t") != "" || lit.start > lineEndWithin(d.s, n.end, maxGap) {
		return 0, false
	}
	text := strings.TrimRight(d.s[lit.start:lineEndWithin(d.s, lit.start, maxPhrase+2)], " \t\r\n")
	return lit.start + len(text), isPassphrase(text)
}

// endsFold reports whether s ends in a word, whatever its case.
func endsFold(s, word string) bool {
	return len(s) >= len(word) && strings.EqualFold(s[len(s)-len(word):], word)
}

// continued masks the rest of a value of a properties file that goes on below
// a backslash.
func (d *detector) continued(n nameRef, lit literal) {
	if lit.quoted || last(d.s[lit.start:lit.end]) != '\\' || lit.end >= len(d.s) || d.s[lit.end] != '\n' {
		return
	}
	at := run(d.s, lit.end+1, &blankSet, maxGap)
	end := run(d.s, at, &notBlank, maxLine)
	if strings.IndexByte(d.s[at:end], '=') < 0 {
		d.found(classOf(n), "assignment", at, end)
	}
}

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
// any byte but blanks: a line of a properties file or of the environment. Such
// lines are short.
func wholeLine(s string, at int) bool {
	end, begin := run(s, at, &notBlank, maxLine), max(0, at-maxLine-1)
	begin += strings.LastIndexByte(s[begin:at], '\n') + 1
	if at-begin > maxLine || end < len(s) && s[end] != '\n' && s[end] != '\r' {
		return false
	}
	before, text := s[begin:at], s[at:end]
	if strings.ContainsAny(text, "\"'`<>{") || strings.HasSuffix(text, "}") && strings.Contains(before, "{") || parenthesised(before, text) {
		return false
	}
	if i := strings.IndexByte(text, ';'); i >= 0 && inConnectionString(s, at+i) {
		return false
	}
	return !strings.HasSuffix(text, ",") && !strings.HasSuffix(text, ";") && !strings.ContainsAny(before, "\"?")
}

const maxLine = 256

// parenthesised reports whether a parenthesis of text is of the code around it,
// and not of a password: it opens there, or closes what was opened before.
func parenthesised(before, text string) bool {
	switch i := strings.IndexAny(text, "()"); {
	case i < 0:
		return false
	case text[i] == '(', i+1 == len(text), !isAlnum(text[i+1]):
		return true
	}
	return strings.Contains(before, "(")
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
