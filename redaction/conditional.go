package redaction

import "strings"

// This file finds values that are not right after their name, such as the branches
// of a conditional, and the user before a password.

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
			d.reportValue(n, "branch", lit.start, lit.end)
		}
		i = lit.next
		d.branchEnd = i
	}
}

// isBranch reports whether a literal after the code before is a branch.
// conditional is set if there was a question mark.
func isBranch(before string, conditional bool) bool {
	return endsWith(" "+before, heads["branch"]) || conditional && strings.HasSuffix(before, ":")
}

// tupleValue returns where the value of the name s[a:b] begins in an assignment to
// several names: user, password = "bob", "...". several is set if it is one. at is 0
// if the values cannot be separated.
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
	a = len(strings.TrimRight(d.s[:a], "$@"))
	i := runBack(d.s, a, &blankSet, 4)
	if i < 3 {
		return
	}
	from := max(0, i-maxName)
	head := d.s[from:i]
	for _, op := range heads["comparer"] {
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
			d.reportValue(n, "comparison", lit.start, lit.end)
		}
		return
	}
}

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
		d.reportValue(n, "value of a header", lit.start, lit.end)
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
		d.reportValue(n, "value of a setting", lit.start, lit.end)
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
	if endsWith(head, heads["returning"]) {
		return i + q, true
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
	a = len(strings.TrimRight(s[:a], "&*$"))
	if a == 0 || s[a-1] != '(' {
		return ""
	}
	return strings.ToLower(s[runBack(s, a-1, &codeIdent, maxName) : a-1])
}

// userBefore masks the user before its password: the two together are a credential.
func (d *detector) userBefore(n nameRef) {
	from := sectionBegin(d.s, n.begin, maxUserGap)
	text := d.s[from:n.begin]
	for range 3 {
		i := lastFold(text, "user")
		if i < 0 || d.userAt(n, from+i) {
			return
		}
		text = text[:i]
	}
}

// lastFold returns the offset of the last word, in small letters, in s in any case, or -1.
func lastFold(s, word string) int {
	for i := len(s) - len(word); i >= 0; i-- {
		if foldByte(s[i]) == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}

// userAt masks the value of the name at s[i] and reports whether it has one.
func (d *detector) userAt(n nameRef, i int) bool {
	end := run(d.s, i, &identSet, maxName)
	if rest := d.s[min(end, n.begin):n.begin]; len(rest) >= 3 && strings.EqualFold(rest[:3], " id") {
		end += 3
	}
	bind, at := d.bindingAfter(i, end)
	if bind != assigned && bind != spaced && bind != paired || at >= n.begin {
		return false
	}
	lit, ok := d.literalAt(at, bind)
	if !ok || lit.end > n.begin || lit.end-lit.start < 2 {
		return false
	}
	switch name := d.text(lit); {
	case isPlaceholder(name), isReference(name), isSource(name), isProse(name),
		!lit.quoted && bind != spaced && !wholeLine(d.s, at) && !inConnectionString(d.s, lit.end):
		return false
	}
	d.report("username", "user of a password", lit.start, lit.end)
	return true
}

// mailServerBefore masks the mail server near a password: the server, the user
// and the password together are SMTP credentials.
func (d *detector) mailServerBefore(n nameRef) {
	if !strings.Contains(d.s[max(0, n.begin-maxServerGap):n.begin], "smtp.") {
		return
	}
	from := sectionBegin(d.s, n.begin, maxServerGap)
	i := from + strings.LastIndex(d.s[from:n.begin], "smtp.")
	if i <= from || !quoteSet.has(d.s[i-1]) || !strings.Contains(strings.ToLower(d.s[lineBegin(d.s, i):i]), "host") {
		return
	}
	if end := run(d.s, i, &hostSet, 255); end < n.begin && d.s[end] == d.s[i-1] {
		d.report("mail-host", "server of a password", i, end)
	}
}
