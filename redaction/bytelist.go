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
