package redaction

import "strings"

// byteList masks the bytes of a key that is written as a list of numbers.
func (d *detector) byteList(n nameRef, at int) bool {
	s := d.s
	at = listBegin(s, at)
	open := strings.IndexAny(s[at:min(len(s), at+40)], "{[(\n;=\"'")
	for open >= 0 && at+open+1 < len(s) && s[at+open] == '[' && s[at+open+1] == ']' {
		more := strings.IndexAny(s[at+open+2:min(len(s), at+open+24)], "{[(\n;=\"'")
		if more < 0 {
			return false
		}
		open += 2 + more
	}
	if open < 0 || strings.IndexByte("{[", s[at+open]) < 0 && (open > 0 || s[at] != '(') {
		return false
	}
	begin := run(s, at+open+1, &spaceSet, maxGap)
	end, covered, numbers := begin, begin, 0
	for end < len(s) && end-begin < maxValue {
		if s[end] == '-' || strings.HasPrefix(s[end:], "(byte)") {
			end = run(s, run(s, end, &castSet, 8), &blankSet, 2)
		}
		stop := run(s, end, &hexNumSet, 18)
		if stop == end || !isDigit(s[end]) {
			break
		}
		numbers += 1 + max(0, stop-end-4)/2
		end = run(s, stop, &suffixSet, 3)
		covered = end
		next := run(s, end, &listGap, maxGap)
		if next == end || stop-begin > 18 && strings.IndexByte(s[begin:stop], ',') < 0 || next >= len(s) || !isDigit(s[next]) && s[next] != '-' && s[next] != '(' {
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

// listBegin skips what stands before the list of numbers at at: a type in
// brackets and what is assigned to it, the name of a function that makes bytes.
func listBegin(s string, at int) int {
	if at < len(s) && s[at] == '[' && at+1 < len(s) && !isDigit(s[at+1]) && s[at+1] != ' ' {
		line := s[at:lineEndWithin(s, at, maxName)]
		if i := strings.Index(line, "] = ["); i > 0 {
			return at + i + len("] = ")
		}
	}
	end := run(s, at, &goIdent, 24)
	if end+1 < len(s) && s[end] == '(' && bytesMakers[s[at:end]] {
		if s[end+1] == '[' {
			return end + 1
		}
		return end
	}
	return at
}

var bytesMakers = map[string]bool{"byteArrayOf": true, "ubyteArrayOf": true, "intArrayOf": true, "bytes": true, "bytearray": true, "Uint8Array": true}

var suffixSet = setOf("uUlL")

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
