package redaction

import "strings"

// A link is how a name is tied to a value.
type link uint8

const (
	unlinked link = iota
	assigned      // name = value, name: value, "name" => value
	fallback      // getenv("name") || value, ${name:-value}
	compared      // name == value
	listed        // "name", "value"
	called        // name("value")
	element       // <name>value</name>
	spaced        // name 'value', --name value
	stated        // name is value
	paired        // key="name" value="value"
)

// maxGap bounds the blanks between a name and its value.
const maxGap = 80

// linkAfter finds what ties the identifier s[a:b] to a value and where that
// value begins.
func (d *detector) linkAfter(a, b int) (link, int) {
	s := d.s
	i, quoted := closers(s, b)
	if l, at := d.pairAfter(a, i); l != unlinked {
		return l, at
	}
	if at := cellAfter(s, b); at > 0 {
		return element, at
	}
	j := run(s, i, &blankSet, maxGap)
	if j >= len(s) {
		return unlinked, 0
	}
	switch c := s[j]; {
	case c == '-' && j > b && lists["directive"][s[a:b]]:
		return spaced, j
	case strings.IndexByte("=:!<>~?+|-", c) >= 0:
		return d.operator(a, j, quoted)
	case c == '.' && j > b && strings.HasPrefix(s[j:], ".="):
		return assigned, gap(s, j+2)
	case c == ',' && (quoted || a > 0 && (s[a-1] == '{' || s[a-1] == ':') && isIdentifier(s[a:b]) || defines(calleeBefore(s, a))):
		return listed, gap(s, j+1)
	case c == ',' && lists["compare"][calleeBefore(s, a)]:
		return compared, gap(s, j+1)
	case c == '.' && i > b:
		return d.methodAfter(i)
	case c == '(' && j == b:
		return called, gap(s, j+1)
	case c == '[' && j == b:
		return d.indexed(j)
	case c == '{' && j == b && j+1 < len(s) && quoteSet.has(s[j+1]):
		return assigned, j + 1
	case j > b && quoteSet.has(c):
		return spaced, j
	case j > b && isAlnum(c), j > b && c == '*', j > b && c == '$':
		return d.wordsAfter(a, b, j)
	case j > b && !isAlnum(c) && strings.HasPrefix(s[max(0, a-1):], "-"), j > b && isFlag(s, a):
		return spaced, j
	}
	return unlinked, 0
}

// defines reports whether a function gives its first argument a value.
func defines(callee string) bool { return callee == "define" || callee == "set" || callee == "putenv" }

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

// cellAfter is where the cell begins that follows the one which ends at i, as in
// <td>name</td><td>value</td>, or 0.
func cellAfter(s string, i int) int {
	for _, c := range []struct{ end, begin string }{{"</td>", "<td>"}, {"</th>", "<td>"}, {"</dt>", "<dd>"}, {"</key>", "<string>"}, {"</name>", "<value>"}} {
		if strings.HasPrefix(s[i:], c.end) {
			if at := run(s, i+len(c.end), &spaceSet, maxGap); strings.HasPrefix(s[at:], c.begin) {
				return run(s, at+len(c.begin), &spaceSet, maxGap)
			}
		}
	}
	return 0
}

// operator reads the operator at i.
func (d *detector) operator(a, i int, quoted bool) (link, int) {
	s := d.s
	end := i
	for end < len(s) && end-i < 4 && strings.IndexByte("=:!<>~?+|-", s[end]) >= 0 {
		end++
	}
	switch op := s[i:end]; op {
	case "=", ":=", "=>", ":", "?=", "+=", "::=", ":::=", "~=", "||=", "??=", ":=>", "?:", "!:", "==>", "<-", "|=", "=:":
		return d.typed(op, gapLines(s, end))
	case "::", "<":
		if op == "::" && end < len(s) && s[end] == ' ' && a == lineBegin(s, a) { // base64 in LDIF
			return assigned, gap(s, end)
		}
		return unlinked, 0
	case "->":
		return listed, gap(s, end)
	case "==", "===", "!=", "!==", "<>":
		return compared, gap(s, end)
	case "||", "??":
		return fallback, gap(s, end)
	case ":-", ":+":
		return fallback, end
	case ">", "|":
		if op == "|" && strings.HasPrefix(strings.TrimLeft(s[lineBegin(s, a):a], " \t"), "|") {
			return paired, gap(s, end) // cells of a table
		} else if op == "|" {
			return spaced, gap(s, end)
		}
		if quoted || opensTag(s, a) {
			at := run(s, end, &spaceSet, maxGap)
			if strings.HasPrefix(s[at:], "<Value>") {
				at = run(s, at+len("<Value>"), &spaceSet, maxGap)
			}
			return element, at
		}
	case "><":
		if value, ok := strings.CutPrefix(s[i:], "><Value>"); ok && opensTag(s, a) {
			return element, len(s) - len(value)
		}
	case "><!": // before CDATA
		if opensTag(s, a) {
			return element, i + 1
		}
	case ">-", ":-|":
		return unlinked, 0
	case "=-", "=+", ":=-", "=!", ":!", "=~", ":~", ":|", "=|", "=?", ":?", "=<", ":<", "=>-", ":>":
		return assigned, i + 1
	}
	return unlinked, 0
}

// opensTag reports whether the name at a is that of an element, with or without
// a namespace.
func opensTag(s string, a int) bool {
	a = runBack(s, a, &namespace, maxName)
	return a > 0 && s[a-1] == '<' || a > 1 && s[a-2] == '<'
}

var namespace = setOf(digits, letters, "_-:")

// typed skips a type between a name and its value, as in "password: str = x".
func (d *detector) typed(op string, at int) (link, int) {
	s := d.s
	if op != ":" && op != "?:" && op != "!:" || at >= len(s) {
		return assigned, at
	}
	begin := at
	if s[at] == '&' { // a type of Rust
		begin += len("&")
		if strings.HasPrefix(s[begin:], "'static ") {
			begin += len("'static ")
		}
	}
	if begin >= len(s) || !isAlnum(s[begin]) {
		return assigned, at
	}
	end := run(s, begin, &typeSet, maxName)
	if end >= len(s) {
		return assigned, at
	}
	i := run(s, end, &blankSet, 8)
	if i+1 < len(s) && s[i] == '=' && s[i+1] != '=' && s[i+1] != '>' && i > end {
		return assigned, gap(s, i+1)
	}
	return assigned, at
}

var typeSet = setOf(digits, letters, "_.<>[]?*|")

// indexed skips an index or an array's size: name[16] = value.
func (d *detector) indexed(i int) (link, int) {
	end := strings.IndexByte(d.s[i:min(len(d.s), i+24)], ']')
	if end < 0 {
		return unlinked, 0
	}
	j := run(d.s, i+end+1, &blankSet, maxGap)
	if j+1 < len(d.s) && d.s[j] == '=' && d.s[j+1] != '=' {
		return assigned, gap(d.s, j+1)
	}
	return unlinked, 0
}

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
		next := run(s, end, &blankSet, maxGap)
		switch {
		case word == "is" || word == "was":
			if next < len(s) && s[next] == ':' {
				next = gap(s, next+1)
			}
			return stated, next
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
		at, of = next, word == "for" || word == "of"
	}
	return spaced, i
}

// userOf masks the quoted user at i whose password a sentence tells.
func (d *detector) userOf(ident string, i int) {
	if d.strengthOf(ident) == strongName {
		if lit, ok := quotedAt(d.s, i); ok && lit.end-lit.start > 1 && !isPlaceholder(d.s[lit.start:lit.end]) && !standsFor(d.s[lit.start:lit.end]) && !isProse(d.s[lit.start:lit.end]) {
			d.found("username", "user of a password", lit.start, lit.end)
		}
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
	switch strings.ToLower(s[j:end]) {
	case "value", "val", "content", "default", "defaultvalue", "initialvalue", "data", "contents":
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

var pairSet = setOf(":=>")

// maxBlockHead is how far the default of a variable may stand below its name.
const maxBlockHead = 240

// gap skips blanks.
func gap(s string, i int) int { return run(s, i, &blankSet, maxGap) }

// gapLines skips blanks and at most one line end with the indentation after it.
func gapLines(s string, i int) int {
	i = gap(s, i)
	if strings.HasPrefix(s[i:], "** ") { // the end of a bold name
		i += len("** ")
	}
	if strings.HasPrefix(s[i:], "<<") { // a here document
		if head, _, ok := strings.Cut(s[i:min(len(s), i+maxName)], "\n"); ok {
			return gap(s, i+len(head)+1)
		}
	}
	if at, ok := skipTag(s, i); ok {
		return gap(s, at)
	}
	j := i
	for j < len(s) && (s[j] == '|' || s[j] == '>' || s[j] == '-') && j-i < 2 {
		j++
	}
	if j < len(s) && s[j] == '\\' && strings.HasPrefix(strings.TrimPrefix(s[j+1:], "\r"), "\n") {
		j++ // the value goes on below
	}
	if j < len(s) && s[j] == '\r' {
		j++
	}
	if j < len(s) && s[j] == '\n' {
		if next := run(s, j+1, &blankSet, maxGap); next > j+1 {
			return next
		}
	}
	return i
}

// skipTag skips the tag of a value in YAML, or the cat of a here document.
func skipTag(s string, i int) (int, bool) {
	for _, tag := range []string{"!!str ", "!!binary ", "!unsafe ", "!str "} {
		if strings.HasPrefix(s[i:], tag) {
			return i + len(tag), true
		}
	}
	if strings.HasPrefix(s[i:], "$(cat <<") {
		if head, _, ok := strings.Cut(s[i:min(len(s), i+maxName)], "\n"); ok {
			return i + len(head) + 1, true
		}
	}
	return 0, false
}
