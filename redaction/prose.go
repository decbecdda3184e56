package redaction

import "strings"

// This file finds passwords in prose: comments, descriptions, pages.

// isProsePassword reports whether a word of prose can only be a password that a
// person made up: it has a mark or capitals among its letters and digits.
func isProsePassword(text string) bool {
	if len(text) < 8 || !isAlnum(text[0]) || strings.ContainsAny(text, "()=<>[]{};:,\"'`/|\\") || !isHumanMade(text) {
		return false
	}
	sh := shapeOf(text)
	onlyWords := func() bool { return isCommonWords(text, len(text)) }
	return sh.digit > 0 && (countIn(text, &passwordMarks) > 0 || sh.digit > 1 && sh.upper > 0 && sh.lower > 0 && !onlyWords())
}

// proseWord returns the word at i without final marks. ok is set for a password.
func proseWord(s string, i int) (lit literal, ok bool) {
	end := run(s, i, &notBlank, maxName)
	text := strings.TrimRight(s[i:end], ".,;:?)\"'`")
	return literal{i, i + len(text), false, i + len(text)}, text != "" && isProsePassword(text)
}

// proseAfter returns where the password begins after the word for it, which ends
// at i: "password X", "password to X", "password (X)", "password (for y): X".
func proseAfter(s string, i int) (at int, ok bool) {
	at = skipBlanks(s, i)
	if at == i || at >= len(s) {
		return 0, false
	}
	if s[at] == '(' {
		if end := strings.IndexAny(s[at:min(len(s), at+maxAside)], ")\n"); end > 0 && strings.HasPrefix(s[at+end:], "): ") {
			at = skipBlanks(s, at+end+len("):"))
		} else {
			at++
		}
	}
	if at = skipBlanks(s, skipWord(s, at, "to ", "from ")); at >= len(s) {
		return 0, false
	}
	_, ok = proseWord(s, at)
	return at, ok
}

// proseBefore masks the password before the name n in "X as password", and the
// second one in "password from X to Y".
func (d *detector) proseBefore(n nameRef) {
	s, i := d.s, n.begin
	if rest := strings.TrimSuffix(s[max(0, i-maxAside):i], "the "); strings.HasSuffix(rest, " as ") {
		end := i - (len(s[max(0, i-maxAside):i]) - len(rest)) - len(" as ")
		d.proseSecret(n, runBack(s, end, &notBlank, maxAside))
	}
	if at := skipBlanks(s, n.end); strings.HasPrefix(s[at:], "from ") {
		at = run(s, skipBlanks(s, at+len("from ")), &notBlank, maxName)
		if strings.HasPrefix(s[at:], " to ") {
			d.proseSecret(n, at+len(" to "))
		}
	}
}

func (d *detector) proseSecret(n nameRef, i int) {
	if lit, ok := proseWord(d.s, i); ok {
		d.reportValue(n, "prose", lit.start, lit.end)
	}
}

// prosePair masks the password in "user / password" at at, where n names the two
// together, and reports whether there is one.
func (d *detector) prosePair(n nameRef, at int) bool {
	s := d.s
	both := isPairName(n.ident)
	if !both && n.strength == strongName && n.begin > 0 && s[n.begin-1] == '/' {
		both = endsFold(s[:n.begin-1], "user") || endsFold(s[:n.begin-1], "username") || endsFold(s[:n.begin-1], "login")
	}
	user := run(s, at, &identSet, maxAside)
	slash := skipBlanks(s, user)
	if !both || user-at < 2 || slash >= len(s) || s[slash] != '/' {
		return false
	}
	begin := skipBlanks(s, slash+1)
	end := run(s, begin, &notBlank, maxName)
	text := strings.TrimRight(s[begin:end], ".,;:)\"'`")
	if strings.IndexByte(text, '/') >= 0 || !isHumanMade(text) && !(isMixed(text) && slash > user) {
		return false
	}
	d.report("password", "user and password", begin, begin+len(text))
	return true
}

// isFlag reports whether the identifier at a is a flag of a command line.
func isFlag(s string, a int) bool {
	return a < len(s) && s[a] == '-' || a > 0 && s[a-1] == '-' && (a < 2 || spaceSet.has(s[a-2]) || s[a-2] == '-' || quoteSet.has(s[a-2]))
}
