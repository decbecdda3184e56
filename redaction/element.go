package redaction

import "strings"

// closers skips what may close around a name: quotes, also escaped ones,
// brackets, a parenthesis after a quote.
func closers(s string, i int) (at int, quoted bool) {
	for n := 0; i < len(s) && n < 6; n++ {
		switch c := s[i]; {
		case quoteSet.has(c):
			quoted = true
		case c == '\\' && i+1 < len(s) && (quoteSet.has(s[i+1]) || s[i+1] == '\\'):
		case c == ']', c == ')', c == '*' && n == 0, c == '}' && quoted:
		case c == '?' && i+1 < len(s) && s[i+1] == ':', c == '!' && i+1 < len(s) && s[i+1] == ':':
		default:
			return i, quoted
		}
		i++
	}
	return i, quoted
}

// afterAttributes is where the text begins of the element that the name s[a:b]
// is the name of, or the value of the first attribute of, after its other attributes. If the name
// is part of a tag that has no such text, at is where the tag ends and ok not set.
func afterAttributes(s string, a, b int, quoted bool) (at int, ok bool) {
	named := quoted && a > 1 && quoteSet.has(s[a-1]) && s[a-2] == '='
	i := b
	if named {
		i++
	} else if !opensTag(s, a) {
		return 0, false
	}
	if i >= len(s) || s[i] != ' ' && (s[i] != '>' || !named) {
		return 0, false
	}
	tag := s[i:min(len(s), i+maxElement)]
	end := strings.IndexAny(tag, "<>\n")
	if end < 0 || tag[end] != '>' {
		return 0, false
	}
	if named && !isElement(s, a) {
		return i, false // such as the type of an input
	}
	switch attributes := tag[:end]; {
	case strings.Contains(attributes, "value=") || !strings.Contains(attributes, "=") && end > 0:
		return 0, false
	case strings.HasSuffix(attributes, "/"):
		return i + end, false
	}
	at = run(s, i+end+1, &spaceSet, maxGap)
	if rest, ok := strings.CutPrefix(s[at:], "<value>"); ok {
		return len(s) - len(rest), true
	}
	return at, at < len(s) && s[at] != '<' || strings.HasPrefix(s[at:], cdata)
}

// isElement reports whether the attribute whose value begins at a is the name
// or key of an element.
func isElement(s string, a int) bool {
	from := max(0, a-maxElement)
	open := strings.LastIndexAny(s[from:a], "<>\n")
	if open < 0 || s[from+open] != '<' {
		return false
	}
	words := strings.Fields(s[from+open : a-1])
	name := strings.TrimSuffix(words[len(words)-1], "=")
	name = name[strings.LastIndexByte(name, ':')+1:]
	return name == "name" || name == "key" || name == "id" || name == "for"
}

// cellAfter is where the cell begins that follows the one which ends at i, as in
// <td>name</td><td>value</td>, or 0.
func cellAfter(s string, i int) int {
	for _, c := range neighbours {
		if strings.HasPrefix(s[i:], c.end) {
			if at := run(s, i+len(c.end), &spaceSet, maxGap); strings.HasPrefix(s[at:], c.begin) {
				return run(s, at+len(c.begin), &spaceSet, maxGap)
			}
		}
	}
	return 0
}

// neighbours are the end of an element that holds a name, and the begin of the one
// that holds its value.
var neighbours = []struct{ end, begin string }{
	{"</td>", "<td>"}, {"</th>", "<td>"}, {"</dt>", "<dd>"}, {"</key>", "<string>"}, {"</name>", "<value>"},
	{"</param-name>", "<param-value>"}, {"</context-param-name>", "<context-param-value>"},
}

// opensTag reports whether the name at a is that of an element, with or without
// a namespace.
func opensTag(s string, a int) bool {
	a = runBack(s, a, &namespace, maxName)
	return a > 0 && s[a-1] == '<' || a > 1 && s[a-2] == '<'
}

var namespace = setOf(digits, letters, "_-:")

var tagSet = setOf(digits, letters, "_-/:")

// skipTag skips the tag of a value in YAML, or the cat of a here document.
func skipTag(s string, i int) (int, bool) {
	for _, tag := range []string{"!!str ", "!!binary ", "!unsafe ", "!str "} {
		if strings.HasPrefix(s[i:], tag) {
			return i + len(tag), true
		}
	}
	if i < len(s) && (s[i] == '&' || s[i] == '!') && i > 0 && s[i-1] == ' ' {
		if end := run(s, i+1, &tagSet, maxName); end > i+1 && end+1 < len(s) && s[end] == ' ' && (isAlnum(s[end+1]) || quoteSet.has(s[end+1])) {
			return end + 1, true
		}
	}
	if strings.HasPrefix(s[i:], "$(cat <<") {
		if head, _, ok := strings.Cut(s[i:min(len(s), i+maxName)], "\n"); ok {
			return i + len(head) + 1, true
		}
	}
	return 0, false
}
