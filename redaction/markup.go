package redaction

import "strings"

// This file finds values in markup: elements and attributes of XML and HTML,
// fields of objects in JSON, tags of YAML.

// afterAttributes returns where the text of an element begins. s[a:b] is the name
// of the element, or the value of its first attribute. If s[a:b] is part of a tag
// without such text, at is where the tag ends and ok is false.
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
	if strings.HasPrefix(s[at:], "<value>") {
		return at + len("<value>"), true
	}
	return at, at < len(s) && s[at] != '<' || strings.HasPrefix(s[at:], cdata)
}

// isElement reports whether the value at a names an element: it is its name or key.
func isElement(s string, a int) bool {
	from := max(0, a-maxElement)
	open := strings.LastIndexAny(s[from:a], "<>\n")
	if open < 0 || s[from+open] != '<' {
		return false
	}
	words := strings.Fields(s[from+open : a-1])
	name := strings.TrimSuffix(lastWord(words), "=")
	name = name[strings.LastIndexByte(name, ':')+1:]
	return name == "name" || name == "key" || name == "id" || name == "for"
}

// opensTag reports whether an element's name, or what follows its namespace, is at a.
func opensTag(s string, a int) bool {
	a = runBack(s, a, &namespace, maxName)
	return a > 0 && s[a-1] == '<' || a > 1 && s[a-2] == '<'
}

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
	if strings.HasPrefix(s[i:], "$(cat <<") {
		if head, _, ok := strings.Cut(s[i:min(len(s), i+maxName)], "\n"); ok {
			return i + len(head) + 1, true
		}
	}
	return 0, false
}

// pairAfter finds the value of the name at a that is itself a value and ends
// before i: two attributes of an element, two fields of an object.
func (d *detector) pairAfter(a, i int) (binding, int) {
	s := d.s
	if a == 0 || !quoteSet.has(s[a-1]) && !strings.HasSuffix(strings.TrimRight(s[max(0, a-4):a], " "), ":") {
		return unbound, 0
	}
	j := i
	switch {
	case j < len(s) && (s[j] == ',' || s[j] == ';'):
		j++
	case strings.HasPrefix(s[j:], "><value>"):
		return element, j + len("><value>")
	case strings.HasPrefix(s[j:], " {"): // a variable of Terraform
		block, _, _ := strings.Cut(s[j:min(len(s), j+maxBlockHead)], "}")
		j += max(0, strings.Index(block, "default"))
	}
	j = run(s, j, &spaceSet, maxGap)
	if byteAt(s, j) == '\\' {
		return unbound, 0
	}
	j = run(s, j, &quoteSet, 1)
	end := run(s, j, &wordSet, 16)
	if end+1 < len(s) && s[end] == ':' && isAlnum(s[end+1]) { // after a namespace
		j, end = end+1, run(s, end+1, &wordSet, 16)
	}
	if next := skipField(s, end); next > 0 {
		j, end = next, run(s, next, &wordSet, 16)
	}
	if !lists["valuefield"][strings.ToLower(s[j:end])] {
		return unbound, 0
	}
	end = run(s, run(s, end, &quoteSet, 1), &blankSet, 16)
	if end < len(s) && (s[end] == ':' || s[end] == '=') {
		return paired, skipBlanks(s, run(s, end, &pairSet, 3))
	}
	return unbound, 0
}

// skipField returns where the name of the next field of an object in JSON begins
// after the field whose name ends at i and whose value is a string, or 0.
func skipField(s string, i int) int {
	if !strings.HasPrefix(s[i:], `":`) {
		return 0
	}
	at := skipBlanks(s, i+2)
	if at >= len(s) || s[at] != '"' {
		return 0
	}
	end := strings.IndexAny(s[at+1:min(len(s), at+maxName)], "\"\n")
	if end < 0 || !strings.HasPrefix(s[at+1+end:], `",`) {
		return 0
	}
	at = run(s, at+1+end+2, &spaceSet, maxGap)
	if at < len(s) && s[at] == '"' {
		return at + 1
	}
	return 0
}
