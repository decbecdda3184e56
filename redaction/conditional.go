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
