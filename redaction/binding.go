package redaction

import (
	"slices"
	"strings"
)

// A binding is how a name is tied to a value.
type binding uint8

const (
	unbound  binding = iota
	assigned         // name = value, name: value, "name" => value
	fallback         // getenv("name") || value, ${name:-value}
	compared         // name == value
	listed           // "name", "value"
	called           // name("value")
	element          // <name>value</name>
	spaced           // name 'value', --name value
	stated           // name is value
	paired           // key="name" value="value"
)

// bindingAfter returns what ties the name s[a:b] to a value, and where that begins.
func (d *detector) bindingAfter(a, b int) (binding, int) {
	s := d.s
	i, quoted := skipClosers(s, b)
	if i == b && isHashKey(s, a, b) {
		i, _ = skipClosers(s, b+1)
	}
	j := skipBlanks(s, i)
	if j >= len(s) || quoted && byteAt(s, a-2) == '=' && strings.IndexByte(s[lineBegin(s, a):a], '<') >= 0 { // an attribute
		return unbound, 0
	}
	if bind, at := argumentAfter(s, a, b, j, quoted); bind != unbound {
		return bind, at
	}
	return d.operatorAfter(a, b, j)
}

// operatorAfter reads the operator, bracket, method or word at j, behind the name
// s[a:b].
func (d *detector) operatorAfter(a, b, j int) (binding, int) {
	s := d.s
	switch c := s[j]; {
	case c == '-' && j > b && lists["directive"][s[a:b]]:
		return spaced, j
	case operatorSet.has(c):
		return d.operator(a, j)
	case c == '(' && j == b:
		return called, skipBlanks(s, j+1)
	case j == b:
	case quoteSet.has(c), isAlnum(c), c == '*', c == '$':
		return spaced, j
	case strings.HasPrefix(s[j:], "_T("), strings.HasPrefix(s[max(0, a-1):], "-"), isFlag(s, a):
		return spaced, j
	}
	return unbound, 0
}

// skipClosers skips what may close around a name: quotes, also escaped ones,
// brackets, a parenthesis after a quote.
func skipClosers(s string, i int) (at int, quoted bool) {
	for n := 0; i < len(s) && n < 6; n++ {
		switch c := s[i]; {
		case quoteSet.has(c):
			quoted = true
		case c == '\\' && i+1 < len(s) && (quoteSet.has(s[i+1]) || s[i+1] == '\\'):
		case c == ']', c == ')', c == '*' && n == 0, c == '}' && quoted:
		case (c == '?' || c == '!') && i+1 < len(s) && s[i+1] == ':':
		default:
			return i, quoted
		}
		i++
	}
	return i, quoted
}

// argumentAfter reads the comma at j behind a name that is an argument or an element.
func argumentAfter(s string, a, b, j int, quoted bool) (binding, int) {
	if s[j] != ',' {
		return unbound, 0
	}
	callee := calleeBefore(s, a)
	switch {
	case quoted, a > 0 && (s[a-1] == '{' || s[a-1] == ':') && isIdentifier(s[a:b]), callee == "define", callee == "set", callee == "putenv":
		return listed, skipBlanks(s, j+1)
	case lists["compare"][callee]:
		return compared, skipSize(s, skipBlanks(s, j+1))
	case isConstant(s[a:b]) && j+1 < len(s) && s[j+1] == ' ':
		return listed, skipBlanks(s, j+1)
	}
	return unbound, 0
}

// skipSize skips the size of a buffer, which is the argument before the value.
func skipSize(s string, i int) int {
	end := run(s, i, &codeIdent, maxName)
	if strings.HasPrefix(s[end:], "(") {
		if n := strings.IndexByte(s[end:min(len(s), end+maxName)], ')'); n > 0 {
			end += n + 1
		}
	}
	if end > i && strings.HasPrefix(s[end:], ", ") {
		return skipBlanks(s, end+1)
	}
	return i
}

// isConstant reports whether ident is spelled like a constant, such as an option.
func isConstant(ident string) bool {
	ident = ident[strings.LastIndexByte(ident, '.')+1:]
	return len(ident) > 3 && strings.IndexByte(ident, '_') > 0 && strings.ToUpper(ident) == ident
}

// isHashKey reports whether s[a:b] is a key of a hash of Perl: $hash{name}, $ref->{name}.
func isHashKey(s string, a, b int) bool {
	return a > 1 && b < len(s) && s[a-1] == '{' && s[b] == '}' && (codeIdent.has(s[a-2]) || s[a-2] == '>' || s[a-2] == '}')
}

// operators maps operators to the binding they make. After those of
// signOperators, the second byte begins the value.
var (
	operators = map[string]binding{
		"=": assigned, ":=": assigned, "=>": assigned, ":": assigned, "?=": assigned, "+=": assigned, "::=": assigned, ":::=": assigned,
		"~=": assigned, "||=": assigned, "??=": assigned, ":=>": assigned, "?:": assigned, "!:": assigned, "==>": assigned, "<-": assigned,
		"|=": assigned, "=:": assigned, "->": listed, "||": fallback, "??": fallback,
		"==": compared, "===": compared, "!=": compared, "!==": compared, "<>": compared,
	}
	signOperators = strings.Fields("=- =+ :=- =! :! =~ :~ :| =| =? :? =< :< =>- :>")
)

// operator reads the operator at i.
func (d *detector) operator(a, i int) (binding, int) {
	s := d.s
	end := run(s, i, &operatorSet, 4)
	op := s[i:end]
	switch bind := operators[op]; {
	case bind == assigned:
		return d.typed(op, skipToValue(s, end))
	case bind != unbound:
		return bind, skipBlanks(s, end)
	case slices.Contains(signOperators, op):
		return assigned, i + 1
	}
	switch op {
	case "::": // base64 in LDIF
		if end < len(s) && s[end] == ' ' && a == lineBegin(s, a) {
			return assigned, skipBlanks(s, end)
		}
	case "|":
		if strings.HasPrefix(strings.TrimLeft(s[lineBegin(s, a):a], " \t"), "|") {
			return paired, skipBlanks(s, end) // cells of a table
		}
		return spaced, skipBlanks(s, end)
	case ":-", ":+":
		return fallback, end
	}
	return unbound, 0
}

// typed skips a type between a name and its value, as in "password: str = x".
func (d *detector) typed(op string, at int) (binding, int) {
	s := d.s
	if op != ":" && op != "?:" && op != "!:" || at >= len(s) {
		return assigned, at
	}
	begin := at
	if s[at] == '&' { // a type of Rust
		begin = skipWord(s, at+1, "'static ")
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
		return assigned, skipBlanks(s, i+1)
	}
	return assigned, at
}

// skipToValue skips blanks, tags, the head of a here document, and at most one
// line end with the indentation after it.
func skipToValue(s string, i int) int {
	i = skipWord(s, skipBlanks(s, i), "** ") // the end of a bold name
	if strings.HasPrefix(s[i:], "<<") {      // a here document
		if head, _, ok := strings.Cut(s[i:min(len(s), i+maxName)], "\n"); ok {
			return skipBlanks(s, i+len(head)+1)
		}
	}
	if at, ok := skipTag(s, i); ok {
		return skipBlanks(s, at)
	}
	j := i
	for j < len(s) && (s[j] == '|' || s[j] == '>' || s[j] == '-') && j-i < 2 {
		j++
	}
	j = skipWord(s, j, "\\\r\n", "\\\n", "\r\n", "\n") // after a backslash, the value continues
	if next := skipBlanks(s, j); next > j && s[j-1] == '\n' {
		return next
	}
	return i
}
