package redaction

import "strings"

// value reads the value at s[at] and masks it if it is a secret.
func (d *detector) value(n nameRef, bind binding, at int) {
	if at >= len(d.s) || bind == called && d.strengthOf(n.ident[strings.LastIndexByte(n.ident, '.')+1:]) == noName {
		return
	}
	if d.registry(n, at) || d.byteList(n, at) || d.charList(n, at) {
		return
	}
	if (bind == assigned || bind == fallback) && (n.strength >= mediumName || isPairName(n.ident)) {
		d.list(n, at)
		d.branches(n, at)
	}
	bind, at = d.valueBegin(n, bind, at)
	if at < 0 {
		return
	}
	lit, ok := d.literalAt(d.innerValue(at), bind)
	if !ok || lit.start < d.placeholderEnd && lit.end <= d.placeholderEnd {
		return
	}
	lit = d.bounded(n, bind, lit)
	text := d.text(lit)
	if (lit.quoted && bind == assigned || isHumanMade(text)) && strings.EqualFold(n.ident, "pwd") {
		n.strength = strongName // a working directory would not be quoted or look so
	}
	if d.exceeded(&d.values, classOf(n), lit.start, lit.end) {
		return
	}
	if !d.isSecret(n, bind, lit, text) {
		d.userAndPassword(n, lit)
		return
	}
	d.reportValue(n, "assignment", lit.start, lit.end)
	d.continued(n, lit)
}

// bounded returns the value that lit is part of, without the prose around it.
func (d *detector) bounded(n nameRef, bind binding, lit literal) literal {
	if lit.quoted {
		lit = trimLiteral(d.s, lit)
	}
	if end, ok := d.phraseLine(n, bind, lit); ok {
		lit.end = end
	}
	if !lit.quoted && bind == stated {
		lit.end = lit.start + len(strings.TrimRight(d.text(lit), ".,;:?)"))
	}
	return lit
}

// userAndPassword masks the password of a value such as bob:password.
func (d *detector) userAndPassword(n nameRef, lit literal) {
	user, password, ok := strings.Cut(d.text(lit), ":")
	if ok && isPairName(n.ident) && isIdentifier(user) && isMixed(password) && isArgument(password) {
		d.report("password", "user and password", lit.end-len(password), lit.end)
	}
}

// valueBegin skips what may stand before the value of n at at. It returns the
// binding and the begin of the value, or -1 if there is none.
func (d *detector) valueBegin(n nameRef, bind binding, at int) (binding, int) {
	rest := d.s[at:min(len(d.s), at+maxName)]
	switch {
	case strings.HasPrefix(rest, "${"): // ${1:-value}: the default of a missing argument
		if i := strings.Index(rest, ":-"); i > 0 && !strings.ContainsAny(rest[:i], "}\n") {
			return fallback, at + i + len(":-")
		}
	case strings.HasPrefix(rest, "return "): // a branch of a switch
		if at = skipBlanks(d.s, at+len("return ")); at >= len(d.s) || !quoteSet.has(d.s[at]) {
			return bind, -1
		}
	case bind == spaced && strings.HasPrefix(rest, "--") && lists["directive"][n.ident]:
		return bind, skipBlanks(d.s, run(d.s, at, &wordSet, maxName))
	case bind == spaced:
		return bind, afterType(d.s, at)
	case bind == assigned && endsFold(n.ident, "authorization"):
		if end := run(d.s, at, &letterSet, maxName); end > at && end+1 < len(d.s) && d.s[end] == ' ' && isAlnum(d.s[end+1]) {
			return bind, end + 1 // after the name of a scheme
		}
	}
	return bind, at
}

// innerValue returns where the value within s[at:] begins: the default of a
// template, or the result of a function of one expression.
func (d *detector) innerValue(at int) int {
	s := d.s
	if at >= len(s) || s[at] != '(' && !quoteSet.has(s[at]) && s[at] != '{' {
		return at
	}
	if strings.HasPrefix(s[at:], "() =>") {
		return skipBlanks(s, at+len("() =>"))
	}
	if i := run(s, at, &quoteSet, 1); strings.HasPrefix(s[i:], "{{") {
		line := s[i:lineEndWithin(s, i, maxBranch)]
		if n := strings.Index(line, "default("); n > 0 && !strings.Contains(line[:n], "}}") {
			return i + n + len("default(")
		}
	}
	return at
}

// phraseLine returns the end of an unquoted passphrase whose first word is lit:
// the end of the line of configuration that its name begins.
func (d *detector) phraseLine(n nameRef, bind binding, lit literal) (end int, ok bool) {
	if lit.quoted || bind != assigned || n.strength < strongName || lit.end >= len(d.s) || d.s[lit.end] != ' ' || !n.isPassword() {
		return 0, false
	}
	begin := lineBegin(d.s, n.begin)
	if !allIn(d.s[begin:n.begin], &blankSet) || lit.start > lineEndWithin(d.s, n.end, maxGap) {
		return 0, false
	}
	text := strings.TrimRight(d.s[lit.start:lineEndWithin(d.s, lit.start, maxPhrase+2)], " \t\r\n")
	return lit.start + len(text), isPassphrase(text)
}

// continued masks the next line of a value in a properties file, after a backslash.
func (d *detector) continued(n nameRef, lit literal) {
	if lit.quoted || lastByte(d.text(lit)) != '\\' || lit.end >= len(d.s) || d.s[lit.end] != '\n' {
		return
	}
	at := skipBlanks(d.s, lit.end+1)
	end := run(d.s, at, &notBlank, maxLine)
	if strings.IndexByte(d.s[at:end], '=') < 0 {
		d.reportValue(n, "assignment", at, end)
	}
}

// reportValue records s[start:end], which stands in the given place beside n, as
// the secret that n names.
func (d *detector) reportValue(n nameRef, place string, start, end int) {
	d.place = place
	d.report(classOf(n), n.rule, start, end)
}

// classOf returns the class of the secrets that n names.
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
func (d *detector) bareAt(at int, bind binding) (literal, bool) {
	s := d.s
	stops := bareStops
	switch {
	case bind == element:
		stops = elementStops
	case bind == assigned && wholeLine(s, at):
		stops = spaceSet
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
	if i == at || bind == element && !strings.HasPrefix(s[run(s, i, &spaceSet, maxGap):], "</") {
		return literal{}, false
	}
	return literal{at, i, false, i}, true
}

// nextField reports whether the & at i begins another field of a query.
func nextField(s string, i int) bool {
	end := run(s, i+1, &identSet, maxName)
	if _, n := decodeEntity(s[i:]); n > 0 {
		return true
	}
	return end == i+1 || end < len(s) && s[end] == '='
}

// wholeLine reports whether the value at at ends its line, so that it may hold
// any byte but blanks: a short line of a properties file or of the environment.
func wholeLine(s string, at int) bool {
	end, begin := run(s, at, &notBlank, maxLine), max(0, at-maxLine-1)
	begin += strings.LastIndexByte(s[begin:at], '\n') + 1
	if at-begin > maxLine || end < len(s) && s[end] != '\n' && s[end] != '\r' {
		return false
	}
	before, text := s[begin:at], s[at:end]
	if strings.ContainsAny(text, "\"'`<>{") || strings.HasSuffix(text, "}") && strings.Contains(before, "{") || closesCode(before, text) {
		return false
	}
	if i := strings.IndexByte(text, ';'); i >= 0 && inConnectionString(s, at+i) {
		return false
	}
	return !strings.HasSuffix(text, ",") && !strings.HasSuffix(text, ";") && !strings.ContainsAny(before, "\"?")
}

// closesCode reports whether a parenthesis of text is part of the code around it
// and not of a password: it opens in text, or was opened before.
func closesCode(before, text string) bool {
	switch i := strings.IndexAny(text, "()"); {
	case i < 0:
		return false
	case text[i] == '(', i+1 == len(text), !isAlnum(text[i+1]):
		return true
	}
	return strings.Contains(before, "(")
}
