package redaction

// This file finds values in markup: elements and attributes of XML and HTML,
// fields of objects in JSON, tags of YAML.

// skipTag skips the tag of a value in YAML, or the cat of a here document.
func skipTag(s string, i int) (int, bool) {
	if end := skipWord(s, i, "!!str ", "!!binary ", "!unsafe ", "!str "); end > i {
		return end, true
	}
	if i < len(s) && (s[i] == '&' || s[i] == '!') && i > 0 && s[i-1] == ' ' {
		if end := run(s, i+1, &tagSet, maxName); end > i+1 && end+1 < len(s) && s[end] == ' ' && (isAlnum(s[end+1]) || quoteSet.has(s[end+1])) {
			return end + 1, true
		}
	}
	return 0, false
}
