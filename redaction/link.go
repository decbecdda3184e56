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
	if i == b && isHashKey(s, a, b) {
		i, _ = closers(s, b+1)
	}
	if isArrayOf(s, a, b) {
		if j := gap(s, b+1); j > b+1 && j < len(s) && s[j] == '{' {
			return assigned, j + 1
		} else if j > b+1 {
			return assigned, j
		}
	}
	if l, at := d.pairAfter(a, i); l != unlinked {
		return l, at
	}
	if at := cellAfter(s, b); at > 0 {
		return element, at
	}
	if at, ok := afterAttributes(s, a, b, quoted); ok {
		return element, at
	} else if at > 0 {
		return unlinked, 0
	}
	j := run(s, i, &blankSet, maxGap)
	if j >= len(s) {
		return unlinked, 0
	}
	switch c := s[j]; {
	case c == '/' && strings.HasPrefix(s[j:], "//="):
		return assigned, gap(s, j+3)
	case c == '/' && j > b && (strings.HasPrefix(s[j:], "/t ") || strings.HasPrefix(s[j:], "/d ")): // of reg add
		if d := strings.Index(s[j:min(len(s), j+maxName)], "/d "); d >= 0 {
			return spaced, gap(s, j+d+3)
		}
	case c == '-' && j > b && lists["directive"][s[a:b]]:
		return spaced, j
	case strings.IndexByte("=:!<>~?+|-", c) >= 0:
		return d.operator(a, j, quoted)
	case c == '.' && j > b && strings.HasPrefix(s[j:], ".="):
		return assigned, gap(s, j+2)
	case c == ',' && (quoted || a > 0 && (s[a-1] == '{' || s[a-1] == ':') && isIdentifier(s[a:b]) || defines(calleeBefore(s, a))):
		return listed, gap(s, j+1)
	case c == ',' && lists["compare"][calleeBefore(s, a)]:
		return compared, afterSize(s, gap(s, j+1))
	case c == ',' && isConstant(s[a:b]) && j+1 < len(s) && s[j+1] == ' ':
		return listed, gap(s, j+1)
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
	case c == '_' && j > b && strings.HasPrefix(s[j:], "_T("):
		return spaced, j
	case j > b && !isAlnum(c) && strings.HasPrefix(s[max(0, a-1):], "-"), j > b && isFlag(s, a):
		return spaced, j
	}
	return unlinked, 0
}

// afterSize skips the size of a buffer that stands before what is copied to it.
func afterSize(s string, i int) int {
	end := run(s, i, &goIdent, maxName)
	if strings.HasPrefix(s[end:], "(") {
		if n := strings.IndexByte(s[end:min(len(s), end+maxName)], ')'); n > 0 {
			end += n + 1
		}
	}
	if end > i && strings.HasPrefix(s[end:], ", ") {
		return gap(s, end+1)
	}
	return i
}

// isConstant reports whether ident is spelt as constants are, such as those of
// the options of a library.
func isConstant(ident string) bool {
	ident = ident[strings.LastIndexByte(ident, '.')+1:]
	return len(ident) > 3 && strings.IndexByte(ident, '_') > 0 && strings.ToUpper(ident) == ident
}

// defines reports whether a function gives its first argument a value.
func defines(callee string) bool { return callee == "define" || callee == "set" || callee == "putenv" }

// isHashKey reports whether the name s[a:b] is the key of a hash of Perl:
// $hash{name}, $ref->{name}.
func isHashKey(s string, a, b int) bool {
	return a > 1 && b < len(s) && s[a-1] == '{' && s[b] == '}' && (goIdent.has(s[a-2]) || s[a-2] == '>' || s[a-2] == '}')
}

// isArrayOf reports whether the name s[a:b] is that of an element of an array
// that a line of Tcl sets: set array(name) value.
func isArrayOf(s string, a, b int) bool {
	return a > 0 && b < len(s) && s[a-1] == '(' && s[b] == ')' && strings.HasPrefix(strings.TrimLeft(s[lineBegin(s, a):a], " \t"), "set ")
}

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
	for _, c := range []struct{ end, begin string }{{"</td>", "<td>"}, {"</th>", "<td>"}, {"</dt>", "<dd>"}, {"</key>", "<string>"}, {"</name>", "<value>"}, {"</param-name>", "<param-value>"}, {"</context-param-name>", "<context-param-value>"}} {
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
	if lazy, ok := strings.CutPrefix(s[i:], "by lazy { "); ok {
		return assigned, len(s) - len(lazy)
	}
	if line := s[end:lineEndWithin(s, end, maxName)]; end < len(s) && s[end] == '(' && strings.Contains(line, ") := ") { // a type of VHDL
		return assigned, end + strings.Index(line, ") := ") + len(") := ")
	}
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
		end = afterWidth(s, end)
		next := run(s, end, &blankSet, maxGap)
		switch {
		case word == "value" && next < len(s) && quoteSet.has(s[next]) && at > i:
			return assigned, next // of COBOL
		case word == "is" || word == "was":
			if rest, ok := strings.CutPrefix(s[next:], "now"); ok {
				next = gap(s, len(s)-len(rest))
			}
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
		at, of = next, of && !strings.EqualFold(s[a:b], "pass") || word == "for" || word == "of"
	}
	return spaced, i
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
