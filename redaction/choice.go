package redaction

import "strings"

// Values of one name that are more than one: the branches of a conditional, the
// elements of a list, the values of an assignment to several names.

// maxChoice bounds how far after a name the branches of a conditional stand.
const maxChoice = 240

// choices masks the literals in the line from at that are branches of
// a conditional or a fallback: c ? "a" : "b", "a" if c else "b", x || "a".
func (d *detector) choices(n nameRef, at int) {
	if at < d.choiceEnd {
		return // they were read with those of a name before
	}
	stop := lineEndWithin(d.s, at, maxChoice)
	asked := false
	for i := at; i < stop; {
		q := strings.IndexAny(d.s[i:stop], "\"'`;")
		if q < 0 || d.s[i+q] == ';' {
			return
		}
		lit, ok := quotedAt(d.s[:stop], i+q)
		if !ok {
			return
		}
		before := strings.TrimRight(d.s[i:i+q], " \t")
		asked = asked || strings.Contains(before, "?")
		if i > at && strings.ContainsAny(before, ",") {
			return
		}
		if branches(before, asked && i > at || strings.Contains(before, "?")) && d.isSecret(n, fallback, lit, d.s[lit.start:lit.end]) {
			d.found(classOf(n), "branch", lit.start, lit.end)
		}
		i = lit.next
		d.choiceEnd = i
	}
}

// branches reports whether a literal after the code before is a branch. asked
// is set if there was a question mark.
func branches(before string, asked bool) bool {
	for _, mark := range []string{"?", "||", " else", " or"} {
		if strings.HasSuffix(" "+before, mark) {
			return true
		}
	}
	return asked && strings.HasSuffix(before, ":")
}

// maxList bounds a list of values, in bytes.
const maxList = 2 << 10

// list masks the secrets of the list or map that begins at at, be it of YAML.
func (d *detector) list(n nameRef, at int) {
	if at < d.listEnd {
		return
	}
	if at < len(d.s) && d.s[at] == '[' {
		if i := strings.IndexByte(d.s[at:min(len(d.s), at+maxName)], '{'); i > 0 && strings.HasPrefix(d.s[at+1:], "]") {
			at += i // []string{
		}
	}
	switch {
	case at >= len(d.s):
	case strings.IndexByte("[{(", d.s[at]) >= 0:
		d.elements(n, at+1)
	case strings.HasPrefix(d.s[at:], "- "):
		d.entries(n, at)
	}
}

// elements masks the secrets among the elements of a list from at on.
func (d *detector) elements(n nameRef, at int) {
	stop := min(len(d.s), at+maxList)
	for i, count := at, 0; i < stop; {
		q := strings.IndexAny(d.s[i:stop], "\"'`]})\x01")
		if q < 0 {
			d.listEnd = stop
			return
		}
		d.listEnd = i + q
		if !quoteSet.has(d.s[i+q]) {
			if count == 0 {
				d.words(n, i, i+q)
			}
			return
		}
		lit, ok := quotedAt(d.s[:stop], i+q)
		if !ok {
			return
		}
		between := strings.TrimSpace(d.s[i : i+q])
		mapped := strings.HasSuffix(between, ":") || strings.HasSuffix(between, "=") || strings.HasSuffix(between, "=>")
		count++
		next := run(d.s, lit.next, &spaceSet, maxGap)
		d.element(n, lit, mapped, count == 2 && between == "," && next < stop && strings.IndexByte(")]}", d.s[next]) >= 0)
		i, d.listEnd = lit.next, lit.next
	}
}

// element masks one value of a list. pair is set for the second of two.
func (d *detector) element(n nameRef, lit literal, mapped, pair bool) {
	text := d.s[lit.start:lit.end]
	next := gap(d.s, lit.next)
	isKey := next < len(d.s) && (d.s[next] == ':' || d.s[next] == '=')
	switch {
	case isKey || strings.ContainsAny(text, " \\") || !isArgument(text) || isPath(text):
	case mapped && (partOfName(d.s, n.begin) || !random(text) && !keyLike(text) || isIntegrity(text) || isSummed(d.fieldBefore(lit.start-1))):
	case pair && isPairName(n.ident) && shapeOf(text).digit > 0 && isMixed(text), elementSecret(n, text):
		d.found(classOf(n), "element of a list", lit.start, lit.end)
	}
}

// partOfName reports whether the word at i goes on before, as in a path or the
// name of a package.
func partOfName(s string, i int) bool { return i > 0 && strings.IndexByte("-/@", s[i-1]) >= 0 }

// isIntegrity knows the sums of lock files.
func isIntegrity(text string) bool {
	head, sum, ok := strings.Cut(text, "-")
	return ok && isAlgorithm(strings.TrimRight(head, digits)) && allIn(sum, &base64Set)
}

// isSummed reports whether a field is about the sum of something.
func isSummed(field string) bool {
	switch strings.ToLower(field) {
	case "integrity", "sha", "sha1", "sha256", "sha512", "md5", "hash", "digest", "checksum", "sum", "commit", "rev", "revision", "version":
		return true
	}
	return false
}

// elementSecret reports whether text is a secret among others in a list: there
// are lists of many things, tokens of grammars among them.
func elementSecret(n nameRef, text string) bool {
	if n.strength < strongName {
		return keyLike(text) && isUseful(text) || isUUID(text) || veryRandom(text) && isUseful(text)
	}
	return isMixed(text) && !looksLikeVersion(text)
}

// isMixed reports whether text has digits, marks or an odd spelling beside its
// letters, as passwords have and words have not.
func isMixed(text string) bool {
	sh := shapeOf(text)
	return sh.letters() > 0 && len(text) >= 6 && (sh.digit > 0 || random(text)) && !wordy(text)
}

// isUseful reports whether text is of the bytes that keys are made of.
func isUseful(text string) bool { return allIn(text, &bearerSet) }

// isPairName reports whether a name is that of a user and a password together.
func isPairName(ident string) bool {
	words := splitWords(ident)
	switch words[len(words)-1] {
	case "auth", "cred", "creds", "credential", "credentials", "login", "user":
		return true
	}
	return false
}

// words masks the words of a list of a shell, which has no quotes or commas.
func (d *detector) words(n nameRef, at, stop int) {
	if n.strength < strongName || d.s[at-1] != '(' || strings.ContainsAny(d.s[at:stop], ",;=\n") {
		return
	}
	for at = gap(d.s, at); at < stop; {
		end := run(d.s[:stop], at, &notBlank, maxValue)
		if text := d.s[at:end]; isArgument(text) && shapeOf(text).digit > 0 {
			d.found(classOf(n), "element of a list", at, end)
		}
		at = gap(d.s, max(end, at+1))
	}
}

// entries masks the secrets among the entries of a list in YAML.
func (d *detector) entries(n nameRef, at int) {
	stop := min(len(d.s), at+maxList)
	for at < stop && strings.HasPrefix(d.s[at:], "- ") {
		begin, next := at+len("- "), lineEndWithin(d.s, at, maxList)
		end := begin + len(strings.TrimRight(d.s[begin:next], " \t\r\n"))
		lit := literal{begin, end, false, end}
		if begin < end && quoteSet.has(d.s[begin]) {
			lit, _ = quotedAt(d.s, begin)
		}
		if text := d.s[lit.start:lit.end]; !strings.Contains(text, " ") && isArgument(text) && elementSecret(n, text) {
			d.found(classOf(n), "entry of a list", lit.start, lit.end)
		}
		at = run(d.s, next, &blankSet, maxGap)
		d.listEnd = at
	}
}

// tupleAt is where the value of the name s[a:b] begins in an assignment to
// several names, as in user, password = "bob", "...". several is set if it is
// one, at is 0 if the values cannot be told apart.
func (d *detector) tupleAt(a, b int) (at int, several bool) {
	begin := lineBegin(d.s, a)
	before := strings.TrimSpace(d.s[begin:a])
	after := d.s[b:lineEndWithin(d.s, b, maxChoice)]
	eq := strings.IndexByte(after, '=')
	if eq <= 0 || eq+1 >= len(after) || after[eq+1] == '=' {
		return 0, false
	}
	left := before + " " + strings.TrimSuffix(after[:eq], ":")
	for _, word := range []string{"var ", "let ", "const ", "local ", "my ("} {
		left = strings.TrimPrefix(left, word)
	}
	if strings.Trim(left, digits+letters+"_.$, )") != "" || !strings.Contains(left, ",") {
		return 0, false
	}
	next := gap(d.s, b+eq+1)
	for i := range strings.Count(left, ",") + 1 {
		if i == strings.Count(before, ",") {
			at = next
		}
		next, _, _ = d.argument(next)
		if i < strings.Count(left, ",") {
			if next >= len(d.s) || d.s[next] != ',' {
				return 0, true
			}
			next = gap(d.s, next+1)
		}
	}
	return at, true
}

// before masks the literal that the name s[a:b] is compared with from behind,
// as in "..." == password, "...".equals(password), assertEquals("...", password).
func (d *detector) before(n nameRef, a int) {
	for a > 0 && (d.s[a-1] == '$' || d.s[a-1] == '@') {
		a--
	}
	i := runBack(d.s, a, &blankSet, 4)
	if i < 3 {
		return
	}
	from := max(0, i-maxName)
	head := d.s[from:i]
	for _, op := range comparers {
		rest, ok := strings.CutSuffix(head, op)
		if !ok {
			continue
		}
		rest = strings.TrimRight(rest, " ")
		if rest == "" || !quoteSet.has(last(rest)) {
			return
		}
		open := strings.LastIndexByte(rest[:len(rest)-1], last(rest))
		if open < 0 || op == "," && !asserts(rest[:open]) {
			return
		}
		lit := literal{from + open + 1, from + len(rest) - 1, true, from + len(rest)}
		if d.isSecret(n, compared, lit, d.s[lit.start:lit.end]) {
			d.found(classOf(n), "comparison", lit.start, lit.end)
		}
		return
	}
}

// comparers stand between a literal and the name it is compared with.
var comparers = []string{"===", "!==", "==", "!=", ".equals(", ".equalsIgnoreCase(", ".eql?(", " eq", " ne", ","}

// asserts reports whether code ends in the call of a function that compares.
func asserts(code string) bool {
	name, ok := strings.CutSuffix(code, "(")
	if !ok {
		return false
	}
	name = strings.ToLower(name[runBack(name, len(name), &goIdent, maxName):])
	return strings.HasSuffix(name, "equals") || strings.HasSuffix(name, "equal") || strings.HasSuffix(name, "eq") || lists["compare"][name]
}

// returned is where the literal begins that the function or property s[a:b]
// returns, or the branch of a switch.
func (d *detector) returned(b int) (at int, ok bool) {
	s := d.s
	i := b
	if i < len(s) && s[i] == '(' {
		end := strings.IndexByte(s[i:min(len(s), i+maxGap)], ')')
		if end < 0 {
			return 0, false
		}
		i += end + 1
	}
	window := s[i:min(len(s), i+maxGap)]
	q := strings.IndexAny(window, "\"'`")
	if q < 0 {
		return 0, false
	}
	head := strings.TrimRight(window[:q], " ")
	for _, mark := range []string{"{ get; set; } =", "{ get; } =", "get() =", "by lazy {", "<const> ="} {
		if strings.HasSuffix(head, mark) {
			return i + q, true
		}
	}
	if strings.ContainsAny(head, ";()#/\x01=") || !strings.HasSuffix(head, "return") || strings.Count(head, "\n") > 1 {
		return 0, false
	}
	return i + q, true
}

// methodAfter reads a call at i on what a name selects: one that sets it, as in
// find("password").fill("..."), or one that compares with it.
func (d *detector) methodAfter(i int) (link, int) {
	for range maxWords {
		end := run(d.s, i+1, &goIdent, maxName)
		if word := d.s[i+1 : end]; end >= len(d.s) || d.s[end] != '.' || word != "to" && word != "should" && word != "not" && word != "is" {
			break
		}
		i = end
	}
	end := run(d.s, i+1, &goIdent, maxName)
	name := strings.ToLower(d.s[i+1 : end])
	next := gap(d.s, end)
	switch {
	case next >= len(d.s):
	case lists["setter"][name] && d.s[end] == '(':
		return assigned, gap(d.s, end+1)
	case lists["compare"][name] && d.s[end] == '(':
		return compared, gap(d.s, end+1)
	case name == "value" && d.s[next] == '=' && !strings.HasPrefix(d.s[next:], "=="):
		return assigned, gap(d.s, next+1)
	}
	return unlinked, 0
}

// maxWords is how many words that say nothing may stand before a method.
const maxWords = 3

// calleeBefore is the name of the function whose first argument begins at a.
func calleeBefore(s string, a int) string {
	for a > 0 && (s[a-1] == '&' || s[a-1] == '*' || s[a-1] == '$') {
		a--
	}
	if a == 0 || s[a-1] != '(' {
		return ""
	}
	return strings.ToLower(s[runBack(s, a-1, &goIdent, maxName) : a-1])
}
