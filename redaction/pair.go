package redaction

import "strings"

// wordsAfter reads what follows a name after a blank: a type and an operator,
// "is", the value of a flag.
func (d *detector) wordsAfter(a, b, i int) (link, int) {
	s := d.s
	if isFlag(s, a) {
		return spaced, i
	}
	at, of := i, false
	for range 3 {
		end := run(s, at, &typeSet, maxName)
		if end == at {
			break
		}
		word := strings.ToLower(s[at:end])
		end = afterWidth(s, end)
		next := run(s, end, &blankSet, maxGap)
		switch {
		case word == "value" && next < len(s) && quoteSet.has(s[next]) && at > i:
			return assigned, next // of COBOL
		case word == "is" || word == "was":
			return stated, afterIs(s, next)
		case word == "or":
			return fallback, next
		case word == "eq" || word == "ne":
			return compared, next
		case (word == "with" || word == "to" || word == "as") && a > 0 && quoteSet.has(s[a-1]) && next < len(s) && quoteSet.has(s[next]):
			return assigned, next // a step of a test in prose
		case next > end && next < len(s) && quoteSet.has(s[next]) && (word == "for" || word == "of" || word == "user"):
			d.userOf(s[a:b], next)
			next = d.skipQuoted(next)
		}
		if next+1 < len(s) && (s[next] == '=' && s[next+1] != '=' && s[next+1] != '>' || s[next] == ':' && s[next+1] == '=') {
			return assigned, gap(s, next+1+strings.IndexByte("=:", s[next]))
		}
		if of && next+1 < len(s) && s[next] == ':' {
			return stated, gap(s, next+1)
		}
		if next == end {
			break
		}
		at, of = next, of && !strings.EqualFold(s[a:b], "pass") || word == "for" || word == "of"
	}
	return spaced, i
}

// afterIs skips what may stand between "is" and what is told.
func afterIs(s string, i int) int {
	if rest, ok := strings.CutPrefix(s[i:], "now"); ok {
		i = gap(s, len(s)-len(rest))
	}
	if i < len(s) && s[i] == ':' {
		i = gap(s, i+1)
	}
	return i
}

// afterWidth skips the width of a type of SQL or COBOL, as in VARCHAR(30).
func afterWidth(s string, i int) int {
	if i < len(s) && s[i] == '(' {
		if end := run(s, i+1, &digitSet, 6); end > i+1 && end < len(s) && s[end] == ')' {
			return end + 1
		}
	}
	return i
}

// userOf masks the quoted user at i whose password a sentence tells.
func (d *detector) userOf(ident string, i int) {
	lit, ok := quotedAt(d.s, i)
	if !ok || d.strengthOf(ident) != strongName {
		return
	}
	if user := d.s[lit.start:lit.end]; len(user) > 1 && !isPlaceholder(user) && !standsFor(user) && !isProse(user) {
		d.found("username", "user of a password", lit.start, lit.end)
	}
}

// skipQuoted returns where the word after the quoted text at i begins.
func (d *detector) skipQuoted(i int) int {
	end := strings.IndexByte(d.s[i+1:min(len(d.s), i+80)], d.s[i])
	if end < 0 {
		return i
	}
	next := i + 1 + end + 1
	if next+1 < len(d.s) && d.s[next] == '@' && quoteSet.has(d.s[next+1]) { // 'user'@'host'
		return d.skipQuoted(next + 1)
	}
	return gap(d.s, next)
}

// isFlag reports whether the identifier at a is a flag of a command line.
func isFlag(s string, a int) bool {
	return a < len(s) && s[a] == '-' || a > 0 && s[a-1] == '-' && (a < 2 || spaceSet.has(s[a-2]) || s[a-2] == '-' || quoteSet.has(s[a-2]))
}

// pairAfter finds the value of a name that is itself a value: two attributes
// of an element, two fields of an object.
func (d *detector) pairAfter(a, i int) (link, int) {
	s := d.s
	if a == 0 || !quoteSet.has(s[a-1]) && !strings.HasSuffix(strings.TrimRight(s[max(0, a-4):a], " "), ":") {
		return unlinked, 0
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
	if j < len(s) && s[j] == '\\' {
		return unlinked, 0
	}
	if j < len(s) && quoteSet.has(s[j]) {
		j++
	}
	end := run(s, j, &wordSet, 16)
	if end+1 < len(s) && s[end] == ':' && isAlnum(s[end+1]) { // after a namespace
		j, end = end+1, run(s, end+1, &wordSet, 16)
	}
	if next := skipField(s, end); next > 0 {
		j, end = next, run(s, next, &wordSet, 16)
	}
	switch strings.ToLower(s[j:end]) {
	case "value", "val", "parametervalue", "optionvalue", "content", "default", "defaultvalue", "initialvalue", "data", "contents":
	default:
		return unlinked, 0
	}
	if end < len(s) && quoteSet.has(s[end]) {
		end++
	}
	end = run(s, end, &blankSet, 16)
	if end < len(s) && (s[end] == ':' || s[end] == '=') {
		return paired, gap(s, run(s, end, &pairSet, 3))
	}
	return unlinked, 0
}

// skipField is where the name of the next field of an object in JSON begins
// after the one whose name ends at i and whose value is a string, or 0.
func skipField(s string, i int) int {
	if !strings.HasPrefix(s[i:], `":`) {
		return 0
	}
	at := gap(s, i+2)
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

var pairSet = setOf(":=>")

// maxBlockHead is how far the default of a variable may stand below its name.
const maxBlockHead = 240
