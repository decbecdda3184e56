package redaction

import (
	"regexp"
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
	written          // "change the password to value": only what looks like one
	item             // of a list
	member           // of a map
	argument         // of a call or command
	cell             // of a table
)

// bindingNames are the bindings that a form rule may name.
var bindingNames = [...]string{"", "assigned", "fallback", "compared", "listed", "called", "element", "spaced", "stated", "paired", "written"}

// value masks the secrets of the value at s[at], which n names. found is set if
// there is a value, secret if it is one.
func (d *detector) value(n nameRef, bind binding, at int) (found, secret bool) {
	if at >= len(d.s) {
		return false, false
	}
	if bitsOf(called, compared, stated, written)>>bind&1 == 0 && d.bytes(n, at) {
		return true, true
	}
	if (bind == assigned || bind == fallback) && n.strength >= mediumName {
		if d.entries(n, at) {
			return true, true
		}
		d.list(n, at)
		d.branches(n, at)
	}
	lit, found := d.literalAt(at, bind)
	if found = found && !d.isNextStatement(n, lit); !found {
		return false, false
	}
	if m := templateDefault.FindStringSubmatchIndex(d.text(lit)); m != nil && lit.quoted {
		d.secret(n, fallback, literal{lit.start + m[2], lit.start + m[3], true, lit.start + m[3]})
	}
	return true, d.candidate(n, bind, d.trimmed(bind, lit))
}

// templateDefault matches the default in a template in quotes.
var templateDefault = regexp.MustCompile(`^(?:\{\{|<%|<\?|\$\{).*(?:\|\||\?:|\?\?|\bor\b|\bdefault\(?) *['"]([^'"]+)['"]`)

// isNextStatement reports whether the literal is on a line below its name, as the first key
// or statement of a block and not as a value.
func (d *detector) isNextStatement(n nameRef, lit literal) bool {
	begin := lineBegin(d.s, lit.start)
	if begin <= n.end || lit.quoted {
		return false
	}
	first, _, _ := strings.Cut(strings.TrimLeft(d.s[lineBegin(d.s, n.begin):n.begin], " \t}"), " ")
	rest := strings.TrimSpace(d.s[lit.end:lineEndWithin(d.s, lit.end, maxLine)])
	return isStatement[first] || rest != "" && !strings.HasPrefix(rest, "#") && !strings.HasPrefix(rest, "//") && !strings.HasPrefix(rest, "<") ||
		lastByte(d.text(lit)) == ':'
}

var isStatement = map[string]bool{
	"if": true, "elif": true, "else": true, "for": true, "foreach": true, "while": true, "case": true, "when": true, "with": true, "switch": true,
	"unless": true, "until": true, "except": true, "def": true, "class": true, "match": true, "func": true, "default": true,
}

// pluralNames are the last words of names of maps, of which each value is a secret.
var pluralNames = map[string]bool{"passwords": true, "passwds": true, "passphrases": true, "pwds": true, "secrets": true}

// entryOf returns how a value of the map is tied to its name. A map of secrets may
// describe them.
func entryOf(n nameRef) binding {
	if strings.HasPrefix(lastWordOf(n.ident), "secret") {
		return item
	}
	return assigned
}

// maxEntries is the part of a map that is read.
const maxEntries = 64 << 10

// entries masks the values of the map at at, if there is one and n names several secrets,
// also those of maps in it. It reports whether there is one.
func (d *detector) entries(n nameRef, at int) bool {
	if !pluralNames[lastWordOf(n.ident)] || n.strength != strongName {
		return false
	}
	if at < d.listEnd {
		return true
	}
	head := d.s[at:lineEndWithin(d.s, at, maxName)]
	if i := strings.IndexByte(head, '{'); i >= 0 && allIn(head[:i], &mapTypeSet) {
		d.members(n, at+i+1)
		return true
	}
	if tail, _, _ := strings.Cut(d.s[n.end:lineEndWithin(d.s, n.end, maxLine)], "#"); strings.Trim(tail, "\"' \t\r\n") != ":" {
		return false
	}
	parent := lineBegin(d.s, n.begin)
	indent := run(d.s, parent, &blankSet, maxLine) - parent
	found := false
	at = lineEnd(d.s, n.end)
	for stop := min(len(d.s), at+maxEntries); at < stop; at = lineEnd(d.s, at) {
		begin, end := run(d.s, at, &blankSet, maxLine), lineEnd(d.s, at)
		line := strings.TrimRight(d.s[begin:end], " \t\r\n")
		m := yamlMember.FindStringSubmatchIndex(line)
		switch {
		case line == "" || line[0] == '#':
			continue
		case begin-at <= indent || strings.HasPrefix(line, sectionEnd[1:2]) || m == nil:
			d.listEnd = max(d.listEnd, at)
			return found
		}
		found = true
		d.work += lexemeWork
		if m[2] < m[3] {
			lit := literal{begin + m[2], begin + m[3], false, end}
			if quoteSet.has(d.s[lit.start]) {
				lit, _ = quotedAt(d.s[:end], lit.start)
			}
			d.secret(n, entryOf(n), lit)
		}
	}
	d.listEnd = max(d.listEnd, at)
	return found
}

var (
	mapTypeSet = setOf(letters + digits + "_[]<>*, .=()")
	yamlMember = regexp.MustCompile(`^["']?[\w.@/-]+["']? *:(?: +([^#\s].*?))?(?: +#.*)?$`)
)

// members masks the values in quotes of the map in braces that begins at at, to its end.
func (d *detector) members(n nameRef, at int) {
	stop := min(len(d.s), at+maxEntries)
	for depth, from := 1, at; at < stop && depth > 0; {
		switch c := d.s[at]; {
		case c == '{':
			depth, from = depth+1, at+1
		case c == '}':
			depth, from = depth-1, at+1
		case c == sectionEnd[1]:
			stop = at
		case quoteSet.has(c):
			d.work += lexemeWork
			lit, _ := quotedAt(d.s[:stop], at)
			before := strings.TrimSpace(d.s[from:at])
			next := byteAt(d.s, skipBlanks(d.s, lit.next))
			if before != "" && strings.IndexByte(":=>", lastByte(before)) >= 0 && next != ':' && next != '=' {
				d.secret(n, entryOf(n), lit)
			}
			at, from = lit.next, lit.next
			continue
		}
		at++
	}
	d.listEnd = max(d.listEnd, at)
}

// candidate masks the literal, or the end of it, if it is a secret.
func (d *detector) candidate(n nameRef, bind binding, lit literal) bool {
	d.work += valueWork + lit.end - lit.start
	if d.isPlaceholder(d.text(lit)) {
		return true
	}
	if d.secret(n, bind, lit) {
		d.continued(n, lit)
		return true
	}
	user, password, ok := strings.Cut(d.text(lit), ":") // such as bob:password
	if !ok || !n.isPair || !isIdentifier(user) || !isMixed(password) {
		return false
	}
	lit.start += len(user) + 1
	n.strength = strongName
	return d.secret(n, argument, lit)
}

// secret masks the literal if it is a secret. It reads no more than the literal.
func (d *detector) secret(n nameRef, bind binding, lit literal) bool {
	if !d.isSecret(n, bind, lit) {
		return false
	}
	d.reportValue(n, lit.start, lit.end)
	return true
}

// trimmed returns the literal without the blanks or the marks of a sentence around it.
func (d *detector) trimmed(bind binding, lit literal) literal {
	switch {
	case lit.quoted:
		return trimLiteral(d.s, lit)
	case bind == stated, bind == written:
		lit.end = lit.start + len(strings.TrimRight(d.text(lit), ".,;:?)\"'`"))
	}
	return lit
}

// continued masks the rest of a value that a properties file continues on the next line,
// after a backslash.
func (d *detector) continued(n nameRef, lit literal) {
	if lit.quoted || lastByte(d.text(lit)) != '\\' || byteAt(d.s, lit.end) != '\n' {
		return
	}
	at := skipBlanks(d.s, lit.end+1)
	end := run(d.s, at, &notBlank, maxLine)
	if strings.IndexByte(d.s[at:end], '=') < 0 {
		d.reportValue(n, at, end)
	}
}

// reportValue records s[start:end] as the secret that n names.
func (d *detector) reportValue(n nameRef, start, end int) {
	d.place = n.form
	d.report(classOf(n), n.rule, start, end)
}

// classOf returns the class of the secrets that n names.
func classOf(n nameRef) string {
	folded := strings.ToLower(n.ident)
	i := slices.IndexFunc(heads["class"], func(stem string) bool { return strings.Contains(folded, stem) })
	switch {
	case i >= 0 && heads["class"][i][0] != 'p':
		return heads["class"][i]
	case i >= 0 || n.strength == strongName:
		return "password"
	}
	return "credential"
}

// list masks the secrets of the list or map at at, also of YAML.
func (d *detector) list(n nameRef, at int) {
	if i := strings.IndexByte(d.s[at:min(len(d.s), at+maxName)], '{'); i > 0 && strings.HasPrefix(d.s[at:], "[]") {
		at += i // []string{
	}
	if at < d.listEnd {
		return
	}
	if strings.IndexByte("[{(", byteAt(d.s, at)) >= 0 {
		d.elements(n, at+1)
	}
	for stop := min(len(d.s), at+maxList); at < stop && strings.HasPrefix(d.s[at:], "- "); d.listEnd = at {
		if lit, ok := d.literalAt(at+len("- "), item); ok {
			d.secret(n, item, lit)
		}
		at = skipBlanks(d.s, lineEndWithin(d.s, at, maxList))
	}
}

// elements masks the secrets among the elements of a list from at on.
func (d *detector) elements(n nameRef, at int) {
	stop := min(len(d.s), at+maxList)
	d.listEnd = stop
	d.literals(at, stop, "]})\x01", func(between string, lit literal) {
		bind := item
		if code := strings.TrimSpace(between); code != "" && strings.IndexByte(":=>", lastByte(code)) >= 0 {
			bind = member
		}
		if next := skipBlanks(d.s, lit.next); strings.IndexByte(":=", byteAt(d.s, next)) < 0 { // not the name of another one
			d.secret(n, bind, lit)
		}
		d.listEnd = lit.next
	})
}

// literals calls found for the literals in quotes of s[at:stop] and the code before
// each, until there is one of the bytes of ends.
func (d *detector) literals(at, stop int, ends string, found func(between string, lit literal)) {
	for at < stop {
		q := strings.IndexAny(d.s[at:stop], "\"'`"+ends)
		if q < 0 || !quoteSet.has(d.s[at+q]) {
			return
		}
		d.work += lexemeWork
		lit, ok := quotedAt(d.s[:stop], at+q)
		if !ok {
			return
		}
		found(d.s[at:at+q], lit)
		at = lit.next
	}
}

// branches masks the literals in the line from at on that are branches of a
// conditional or a fallback: c ? "a" : "b", "a" if c else "b", x || "a".
func (d *detector) branches(n nameRef, at int) {
	if at < d.branchEnd {
		return // read with those of a name before
	}
	conditional := false
	d.literals(at, lineEndWithin(d.s, at, maxBranch), ";", func(before string, lit literal) {
		before = " " + strings.TrimRight(before, " \t")
		conditional = conditional || strings.Contains(before, "?")
		if endsWith(before, heads["branch"]) || conditional && strings.HasSuffix(before, ":") {
			d.secret(n, fallback, lit)
		}
		d.branchEnd = lit.next
	})
}

// bytes masks the numbers at at that are the bytes of a secret, behind a type, a function
// or a bracket, and reports whether there are some.
func (d *detector) bytes(n nameRef, at int) bool {
	const maxType, least = 40, 10
	if n.strength < mediumName || strings.HasSuffix(strings.ToLower(n.ident), "tokens") {
		return false
	}
	head := d.s[at:lineEndWithin(d.s, at, maxType)]
	d.work += lexemeWork + len(head)
	for i := 0; i < len(head) && !quoteSet.has(head[i]); i++ {
		if strings.IndexByte("{[(", head[i]) < 0 {
			continue
		}
		if begin, end, numbers := readBytes(d.s, at+i+1); numbers >= least {
			d.reportValue(n, begin, end)
			return true
		}
	}
	return false
}

// readBytes reads a list of numbers at i. It returns where they are and how many there are;
// a number of eight bytes counts as such.
func readBytes(s string, i int) (begin, end, numbers int) {
	const maxBetween = 6 // lexemes
	begin = skipSpace(s, i)
	for stop, between := begin+maxValue, 0; i < stop && between < maxBetween; between++ {
		l := nextLexeme(s, i)
		i = l.end
		switch text := s[l.begin:l.end]; {
		case l.kind == lexWord && len(text) <= 18 && (isDigit(text[0]) || len(text) == 2 && allIn(text, &hexSet)):
			numbers += 1 + max(0, len(text)-4)/2
			end, between = l.end, 0
		case !lists["betweenbytes"][text]:
			return begin, end, numbers
		}
	}
	return begin, end, numbers
}
