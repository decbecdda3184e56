package redaction

import "strings"

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
	d.report(classOf(n), "byte list", begin, covered)
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
	for end > begin && !hexSet.has(d.s[end-1]) {
		end--
	}
	d.report(classOf(n), "value of a registry", begin, end)
	return true
}

// charList masks the characters of a password that is written as a list of
// character literals.
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
	d.report(classOf(n), "list of characters", begin, covered)
	return true
}
