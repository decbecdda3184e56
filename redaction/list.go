package redaction

import "strings"

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
	case isDigest(text), mapped && (partOfName(d.s, n.begin) || isSummed(d.fieldBefore(lit.start-1))):
	case mapped && n.strength == strongName && human(text) && !isIdentifier(text):
		d.found(classOf(n), "element of a list", lit.start, lit.end)
	case mapped && !random(text) && !keyLike(text):
	case pair && isPairName(n.ident) && shapeOf(text).digit > 0 && isMixed(text), elementSecret(n, text):
		d.found(classOf(n), "element of a list", lit.start, lit.end)
	}
}

// partOfName reports whether the word at i goes on before, as in a path or the
// name of a package.
func partOfName(s string, i int) bool { return i > 0 && strings.IndexByte("-/@", s[i-1]) >= 0 }

// isSummed reports whether a field is about the sum of something.
func isSummed(field string) bool {
	return lists["digest"][strings.ToLower(field)]
}

// elementSecret reports whether text is a secret among others in a list: there
// are lists of many things, tokens of grammars among them.
func elementSecret(n nameRef, text string) bool {
	if n.strength < strongName {
		return keyLike(text) && isUseful(text) || isUUID(text) || veryRandom(text) && isUseful(text)
	}
	return (isMixed(text) || human(text) && countIn(text, &passwordMarks) > 0) && !looksLikeVersion(text)
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
