package redaction

import "strings"

// This file finds values that are not right after their name: the branches of a
// conditional, the values of several names, what a name is compared with, what a
// function returns.

// maxBranch bounds how far after a name the branches of a conditional are.
const maxBranch = 240

// branches masks the literals in the line from at on that are branches of a
// conditional or a fallback: c ? "a" : "b", "a" if c else "b", x || "a".
func (d *detector) branches(n nameRef, at int) {
	if at < d.branchEnd {
		return // read with those of a name before
	}
	stop := lineEndWithin(d.s, at, maxBranch)
	conditional := false
	for i := at; i < stop; {
		q := strings.IndexAny(d.s[i:stop], "\"'`;")
		if q < 0 || d.s[i+q] == ';' {
			return
		}
		lit, ok := quotedAt(d.s[:stop], i+q)
		if !ok {
			return
		}
		before := strings.TrimRight(d.s[i:i+q], " \t")
		conditional = conditional || strings.Contains(before, "?")
		if i > at && strings.Contains(before, ",") {
			return
		}
		if isBranch(before, conditional && i > at || strings.Contains(before, "?")) && d.isSecret(n, fallback, lit, d.text(lit)) {
			d.report(classOf(n), "branch", lit.start, lit.end)
		}
		i = lit.next
		d.branchEnd = i
	}
}

// isBranch reports whether a literal after the code before is a branch.
// conditional is set if there was a question mark.
func isBranch(before string, conditional bool) bool {
	for _, mark := range []string{"?", "||", " else", " or"} {
		if strings.HasSuffix(" "+before, mark) {
			return true
		}
	}
	return conditional && strings.HasSuffix(before, ":")
}

// tupleValue returns where the value of the name s[a:b] begins in an assignment
// to several names, such as user, password = "bob", "...". several is set if it
// is one. at is 0 if the values cannot be separated.
func (d *detector) tupleValue(a, b int) (at int, several bool) {
	before := strings.TrimSpace(d.s[lineBegin(d.s, a):a])
	after := d.s[b:lineEndWithin(d.s, b, maxBranch)]
	eq := strings.IndexByte(after, '=')
	if eq <= 0 || eq+1 >= len(after) || after[eq+1] == '=' {
		return 0, false
	}
	left := before + " " + strings.TrimSuffix(after[:eq], ":")
	for _, word := range []string{"var ", "let ", "const ", "local ", "my ("} {
		left = strings.TrimPrefix(left, word)
	}
	if strings.Trim(left, digits+letters+"_.$, )") != "" || !strings.Contains(left, ",") {
		return 0, false
	}
	next := skipBlanks(d.s, b+eq+1)
	for i := range strings.Count(left, ",") + 1 {
		if i == strings.Count(before, ",") {
			at = next
		}
		next, _, _ = d.argument(next)
		if i < strings.Count(left, ",") {
			if next >= len(d.s) || d.s[next] != ',' {
				return 0, true
			}
			next = skipBlanks(d.s, next+1)
		}
	}
	return at, true
}

// comparedBefore masks the literal before the name at a that is compared with
// it: "..." == password, "...".equals(password), assertEquals("...", password).
func (d *detector) comparedBefore(n nameRef, a int) {
	for a > 0 && (d.s[a-1] == '$' || d.s[a-1] == '@') {
		a--
	}
	i := runBack(d.s, a, &blankSet, 4)
	if i < 3 {
		return
	}
	from := max(0, i-maxName)
	head := d.s[from:i]
	for _, op := range comparers {
		rest, ok := strings.CutSuffix(head, op)
		if !ok {
			continue
		}
		rest = strings.TrimRight(rest, " ")
		if rest == "" || !quoteSet.has(lastByte(rest)) {
			return
		}
		open := strings.LastIndexByte(rest[:len(rest)-1], lastByte(rest))
		if open < 0 || op == "," && !asserts(rest[:open]) {
			return
		}
		lit := literal{from + open + 1, from + len(rest) - 1, true, from + len(rest)}
		if d.isSecret(n, compared, lit, d.text(lit)) {
			d.report(classOf(n), "comparison", lit.start, lit.end)
		}
		return
	}
}

// comparers may stand between a literal and the name it is compared with.
var comparers = []string{"===", "!==", "==", "!=", ".equals(", ".equalsIgnoreCase(", ".eql?(", " eq", " ne", ","}

// asserts reports whether code ends in the call of a function that compares.
func asserts(code string) bool {
	name, ok := strings.CutSuffix(code, "(")
	if !ok {
		return false
	}
	name = strings.ToLower(name[runBack(name, len(name), &codeIdent, maxName):])
	return strings.HasSuffix(name, "equals") || strings.HasSuffix(name, "equal") || strings.HasSuffix(name, "eq") || lists["compare"][name]
}

// headerField masks the value of the header n that the code before n sets:
// addValue("...", forHTTPHeaderField: "name").
func (d *detector) headerField(n nameRef, before string) {
	rest, ok := strings.CutSuffix(before, "forHTTPHeaderField:")
	if !ok {
		return
	}
	rest = strings.TrimRight(rest, " ,")
	open := strings.LastIndexByte(strings.TrimSuffix(rest, `"`), '"')
	if open < 0 || lastByte(rest) != '"' {
		return
	}
	begin := max(0, n.begin-maxBranch) + open
	if lit, ok := quotedAt(d.s, begin); ok && d.isSecret(n, assigned, lit, d.text(lit)) {
		d.report(classOf(n), "value of a header", lit.start, lit.end)
	}
}

// settingBefore masks the value that an SQL statement gives the setting n in the
// condition that ends at i: SET value = '...' WHERE name = 'n'.
func (d *detector) settingBefore(n nameRef, i int) {
	line := strings.ToLower(d.s[max(lineBegin(d.s, i), i-maxBranch):i])
	set := strings.Index(line, "value")
	if where := strings.LastIndex(line, " where "); set < 0 || where < set || !strings.HasPrefix(strings.TrimLeft(line[set+len("value"):], " "), "=") {
		return
	}
	at := skipBlanks(d.s, i-len(line)+set+strings.IndexByte(line[set:], '=')+1)
	if lit, ok := d.literalAt(at, listed); ok && lit.end < i && d.isSecret(n, assigned, lit, d.text(lit)) {
		d.report(classOf(n), "value of a setting", lit.start, lit.end)
	}
}

// returnedLiteral returns where the literal begins that a function or property
// returns whose name ends at b, or that a branch of a switch returns.
func (d *detector) returnedLiteral(b int) (at int, ok bool) {
	s := d.s
	i := b
	if i < len(s) && s[i] == '(' {
		end := strings.IndexByte(s[i:min(len(s), i+maxGap)], ')')
		if end < 0 {
			return 0, false
		}
		i += end + 1
	}
	window := s[i:min(len(s), i+maxGap)]
	q := strings.IndexAny(window, "\"'`")
	if q < 0 {
		return 0, false
	}
	head := strings.TrimRight(window[:q], " ")
	for _, mark := range []string{"{ get; set; } =", "{ get; } =", "get() =", "by lazy {", "<const> ="} {
		if strings.HasSuffix(head, mark) {
			return i + q, true
		}
	}
	if strings.ContainsAny(head, ";()#/\x01=") || !strings.HasSuffix(head, "return") || strings.Count(head, "\n") > 1 {
		return 0, false
	}
	return i + q, true
}

// methodAfter reads a call at i on what a name selects: one that sets it, as in
// find("password").fill("..."), or one that compares it.
func (d *detector) methodAfter(i int) (binding, int) {
	const fillers = 3 // words such as should and not before the method
	for range fillers {
		end := run(d.s, i+1, &codeIdent, maxName)
		if word := d.s[i+1 : end]; end >= len(d.s) || d.s[end] != '.' || word != "to" && word != "should" && word != "not" && word != "is" {
			break
		}
		i = end
	}
	end := run(d.s, i+1, &codeIdent, maxName)
	name := strings.ToLower(d.s[i+1 : end])
	next := skipBlanks(d.s, end)
	if next >= len(d.s) {
		return unbound, 0
	}
	if d.s[end] == '(' {
		for _, m := range methods {
			if lists[m.list][name] {
				return m.bind, skipBlanks(d.s, end+1)
			}
		}
	}
	if name == "value" && d.s[next] == '=' && !strings.HasPrefix(d.s[next:], "==") {
		return assigned, skipBlanks(d.s, next+1)
	}
	return unbound, 0
}

// methods are the lists of methods and how they bind their argument.
var methods = []struct {
	list string
	bind binding
}{{"orelse", fallback}, {"setter", assigned}, {"compare", compared}}

// calleeBefore returns the name of the function whose first argument begins at a.
func calleeBefore(s string, a int) string {
	for a > 0 && (s[a-1] == '&' || s[a-1] == '*' || s[a-1] == '$') {
		a--
	}
	if a == 0 || s[a-1] != '(' {
		return ""
	}
	return strings.ToLower(s[runBack(s, a-1, &codeIdent, maxName) : a-1])
}
