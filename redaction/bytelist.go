package redaction

import "strings"

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
	end, covered, numbers := begin, begin, 0
	for end < len(s) && end-begin < maxValue {
		if s[end] == '-' || strings.HasPrefix(s[end:], "(byte)") {
			end = run(s, run(s, end, &castSet, 8), &blankSet, 2)
		}
		stop := run(s, end, &hexNumSet, 5)
		if stop == end || !isDigit(s[end]) {
			break
		}
		numbers++
		end, covered = stop, stop
		next := run(s, end, &listGap, maxGap)
		if next == end || next >= len(s) || !isDigit(s[next]) && s[next] != '-' && s[next] != '(' {
			break
		}
		end = next
	}
	if numbers < 10 || n.strength < mediumName || strings.HasSuffix(strings.ToLower(n.ident), "tokens") {
		return false
	}
	d.found(classOf(n), "byte list", begin, covered)
	return true
}

var (
	hexNumSet = setOf(digits, "abcdefABCDEFxX")
	listGap   = setOf(", \t\r\n")
)

var castSet = setOf("-(byte)")

// registry masks the bytes of a value in an export of a Windows registry.
func (d *detector) registry(n nameRef, at int) bool {
	if !strings.HasPrefix(d.s[at:], "hex") {
		return false
	}
	i := strings.IndexByte(d.s[at:min(len(d.s), at+8)], ':')
	if i < 0 {
		return false
	}
	begin := at + i + 1
	end := run(d.s, begin, &registrySet, maxValue)
	for end > begin && !hexSet.has(d.s[end-1]) {
		end--
	}
	if n.strength < mediumName {
		return false
	}
	d.found(classOf(n), "value of a registry", begin, end)
	return true
}

var registrySet = setOf(digits, "abcdefABCDEF", ", \\\r\n")

// charList masks the characters of a password that is written as a list of them.
func (d *detector) charList(n nameRef, at int) bool {
	open := strings.IndexByte(d.s[at:min(len(d.s), at+maxCharType)], '{')
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
	d.found(classOf(n), "list of characters", begin, covered)
	return true
}

// maxCharType is the length of what may stand before a list of characters.
const maxCharType = 24
