package redaction

import "strings"

// list masks the secrets of the list or map at at, also of YAML.
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
		d.yamlEntries(n, at)
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
				d.shellWords(n, i, i+q)
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

// element masks one value of a list if it is a secret. mapped is set for the
// value of a key, pair for the second of two values.
func (d *detector) element(n nameRef, lit literal, mapped, pair bool) {
	text := d.text(lit)
	next := skipBlanks(d.s, lit.next)
	isKey := next < len(d.s) && (d.s[next] == ':' || d.s[next] == '=')
	inName := n.begin > 0 && strings.IndexByte("-/@", d.s[n.begin-1]) >= 0 // a path, the name of a package
	switch {
	case isKey || strings.ContainsAny(text, " \\") || !isArgument(text) || isPath(text),
		isDigest(text), mapped && (inName || lists["digest"][strings.ToLower(d.fieldBefore(lit.start-1))]):
	case mapped && n.strength == strongName && isHumanMade(text) && !isIdentifier(text):
		d.reportValue(n, "element of a list", lit.start, lit.end)
	case mapped && !isRandom(text) && !isKeyLike(text):
	case pair && isPairName(n.ident) && shapeOf(text).digit > 0 && isMixed(text), isElementSecret(n, text):
		d.reportValue(n, "element of a list", lit.start, lit.end)
	}
}

// isElementSecret reports whether an element of a list is a secret. It is strict:
// lists of other things, such as tokens of a grammar, have the same names.
func isElementSecret(n nameRef, text string) bool {
	if n.strength < strongName {
		useful := allIn(text, &bearerSet)
		return isKeyLike(text) && useful || isUUID(text) || isVeryRandom(text) && useful
	}
	return (isMixed(text) || isHumanMade(text) && countIn(text, &passwordMarks) > 0) && !looksLikeVersion(text)
}

// isMixed reports whether text has digits, marks or an unusual spelling beside
// its letters, as passwords have and words do not.
func isMixed(text string) bool {
	sh := shapeOf(text)
	return sh.letters() > 0 && len(text) >= 6 && (sh.digit > 0 || isRandom(text)) && !isWordy(text)
}

// shellWords masks the words of a list of a shell, which has no quotes or commas.
func (d *detector) shellWords(n nameRef, at, stop int) {
	if n.strength < strongName || d.s[at-1] != '(' || strings.ContainsAny(d.s[at:stop], ",;=\n") {
		return
	}
	for at = skipBlanks(d.s, at); at < stop; {
		end := run(d.s[:stop], at, &notBlank, maxValue)
		if text := d.s[at:end]; isArgument(text) && shapeOf(text).digit > 0 {
			d.reportValue(n, "element of a list", at, end)
		}
		at = skipBlanks(d.s, max(end, at+1))
	}
}

// yamlEntries masks the secrets among the entries of a list in YAML.
func (d *detector) yamlEntries(n nameRef, at int) {
	stop := min(len(d.s), at+maxList)
	for at < stop && strings.HasPrefix(d.s[at:], "- ") {
		begin, next := at+len("- "), lineEndWithin(d.s, at, maxList)
		end := begin + len(strings.TrimRight(d.s[begin:next], " \t\r\n"))
		lit := literal{begin, end, false, end}
		if begin < end && quoteSet.has(d.s[begin]) {
			lit, _ = quotedAt(d.s, begin)
		}
		if text := d.text(lit); !strings.Contains(text, " ") && isArgument(text) && isElementSecret(n, text) {
			d.reportValue(n, "entry of a list", lit.start, lit.end)
		}
		at = skipBlanks(d.s, next)
		d.listEnd = at
	}
}

// byteList masks the bytes of a key that is written as a list of numbers.
func (d *detector) byteList(n nameRef, at int) bool {
	begin, ok := byteListBegin(d.s, at)
	if !ok {
		return false
	}
	covered, numbers := readNumbers(d.s, begin)
	if numbers < 10 || n.strength < mediumName || strings.HasSuffix(strings.ToLower(n.ident), "tokens") {
		return false
	}
	d.reportValue(n, "byte list", begin, covered)
	return true
}

// readNumbers reads a list of numbers from begin on. It returns the end of the
// last one and how many bytes the list stands for, at least.
func readNumbers(s string, begin int) (covered, numbers int) {
	end, covered := begin, begin
	for end < len(s) && end-begin < maxValue {
		if s[end] == '-' || strings.HasPrefix(s[end:], "(byte)") {
			end = run(s, run(s, end, &castSet, 8), &blankSet, 2)
		}
		stop := run(s, end, &hexNumSet, 18)
		if stop == end || !isDigit(s[end]) {
			break
		}
		numbers += 1 + max(0, stop-end-4)/2
		covered = run(s, stop, &suffixSet, 3)
		end = run(s, covered, &listGap, maxGap)
		if end == covered || stop-begin > 18 && strings.IndexByte(s[begin:stop], ',') < 0 || end >= len(s) || !isDigit(s[end]) && s[end] != '-' && s[end] != '(' {
			break
		}
	}
	return covered, numbers
}

// byteListBegin returns where the numbers of the list at at begin, after a type
// in brackets, an assignment or the name of a function that makes bytes.
func byteListBegin(s string, at int) (begin int, ok bool) {
	if at+1 < len(s) && s[at] == '[' && !isDigit(s[at+1]) && s[at+1] != ' ' {
		line := s[at:lineEndWithin(s, at, maxName)]
		if i := strings.Index(line, "] = ["); i > 0 {
			at += i + len("] = ")
		}
	}
	if end := run(s, at, &codeIdent, 24); end+1 < len(s) && s[end] == '(' && lists["bytes"][s[at:end]] {
		at = end
		if s[end+1] == '[' {
			at++
		}
	}
	open := strings.IndexAny(s[at:min(len(s), at+40)], "{[(\n;=\"'")
	for open >= 0 && strings.HasPrefix(s[at+open:], "[]") {
		more := strings.IndexAny(s[at+open+2:min(len(s), at+open+24)], "{[(\n;=\"'")
		if more < 0 {
			return 0, false
		}
		open += 2 + more
	}
	if open < 0 || strings.IndexByte("{[", s[at+open]) < 0 && (open > 0 || s[at] != '(') {
		return 0, false
	}
	return run(s, at+open+1, &spaceSet, maxGap), true
}

// registry masks the bytes of a value in an export of the Windows registry.
func (d *detector) registry(n nameRef, at int) bool {
	if !strings.HasPrefix(d.s[at:], "hex") {
		return false
	}
	i := strings.IndexByte(d.s[at:min(len(d.s), at+8)], ':')
	if i < 0 || n.strength < mediumName {
		return false
	}
	begin := at + i + 1
	end := run(d.s, begin, &registrySet, maxValue)
	end = begin + len(strings.TrimRight(d.s[begin:end], ", \\\r\n"))
	d.reportValue(n, "value of a registry", begin, end)
	return true
}

// charList masks a password that is written as a list of character literals.
func (d *detector) charList(n nameRef, at int) bool {
	const maxType = 24 // before the list
	open := strings.IndexByte(d.s[at:min(len(d.s), at+maxType)], '{')
	if n.strength < strongName || open < 0 && !strings.HasPrefix(d.s[at:], "[") {
		return false
	}
	begin := run(d.s, at+max(open, 0)+1, &spaceSet, maxGap)
	end, covered, count := begin, begin, 0
	for end+2 < len(d.s) && end-begin < maxValue && d.s[end] == '\'' && d.s[end+2] == '\'' {
		count++
		covered = end + 3
		end = run(d.s, covered, &listGap, maxGap)
	}
	if count < 4 {
		return false
	}
	d.reportValue(n, "list of characters", begin, covered)
	return true
}
