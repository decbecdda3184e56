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
