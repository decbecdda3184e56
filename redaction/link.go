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
		j := gap(s, b+1)
		if j < len(s) && s[j] == '{' && j > b+1 {
			j++
		}
		if j > b+1 {
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
	if l, at := argumentAfter(s, a, b, j, quoted); l != unlinked {
		return l, at
	}
	switch c := s[j]; {
	case strings.HasPrefix(s[j:], "//="):
		return assigned, gap(s, j+3)
	case j > b && (strings.HasPrefix(s[j:], "/t ") || strings.HasPrefix(s[j:], "/d ")): // of reg add
		if d := strings.Index(s[j:min(len(s), j+maxName)], "/d "); d >= 0 {
			return spaced, gap(s, j+d+3)
		}
	case c == '-' && j > b && lists["directive"][s[a:b]]:
		return spaced, j
	case strings.IndexByte("=:!<>~?+|-", c) >= 0:
		return d.operator(a, j, quoted)
	case j > b && strings.HasPrefix(s[j:], ".="):
		return assigned, gap(s, j+2)
	case c == '.' && i > b:
		return d.methodAfter(i)
	case c == '(' && j == b:
		return called, gap(s, j+1)
	case c == '[' && j == b:
		return d.indexed(j)
	case c == '{' && j == b && j+1 < len(s) && quoteSet.has(s[j+1]):
		return assigned, j + 1
	case j > b:
		return d.afterBlanks(a, b, j)
	}
	return unlinked, 0
}

// argumentAfter reads the comma at j, if it is one, behind a name that is itself an
// argument or an element.
func argumentAfter(s string, a, b, j int, quoted bool) (link, int) {
	if s[j] != ',' {
		return unlinked, 0
	}
	switch {
	case quoted, a > 0 && (s[a-1] == '{' || s[a-1] == ':') && isIdentifier(s[a:b]), defines(calleeBefore(s, a)):
		return listed, gap(s, j+1)
	case lists["compare"][calleeBefore(s, a)]:
		return compared, afterSize(s, gap(s, j+1))
	case isConstant(s[a:b]) && j+1 < len(s) && s[j+1] == ' ':
		return listed, gap(s, j+1)
	}
	return unlinked, 0
}

// afterBlanks reads what stands at j, with nothing but blanks before it.
func (d *detector) afterBlanks(a, b, j int) (link, int) {
	switch c := d.s[j]; {
	case quoteSet.has(c):
		return spaced, j
	case isAlnum(c), c == '*', c == '$':
		return d.wordsAfter(a, b, j)
	case strings.HasPrefix(d.s[j:], "_T("), strings.HasPrefix(d.s[max(0, a-1):], "-"), isFlag(d.s, a):
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
	case "|":
		if strings.HasPrefix(strings.TrimLeft(s[lineBegin(s, a):a], " \t"), "|") {
			return paired, gap(s, end) // cells of a table
		}
		return spaced, gap(s, end)
	case ">":
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
