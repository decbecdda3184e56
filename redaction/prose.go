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

// wordsAfter reads what follows the name s[a:b] at i, after a blank: a type and
// an operator, "is", the value of a flag.
func (d *detector) wordsAfter(a, b, i int) (binding, int) {
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
		end = skipWidth(s, end)
		next := skipBlanks(s, end)
		nextQuoted := next < len(s) && quoteSet.has(s[next])
		switch word {
		case "value":
			if nextQuoted && at > i { // of COBOL
				return assigned, next
			}
		case "is", "was":
			return stated, skipNow(s, next)
		case "or":
			return fallback, next
		case "eq", "ne":
			return compared, next
		case "with", "to", "as":
			if a > 0 && quoteSet.has(s[a-1]) && nextQuoted { // a step of a test in prose
				return assigned, next
			}
		case "for", "of", "user":
			if next > end && nextQuoted {
				next = d.skipQuoted(next)
			}
		}
		if next+1 < len(s) && (s[next] == '=' && s[next+1] != '=' && s[next+1] != '>' || s[next] == ':' && s[next+1] == '=') {
			return assigned, skipBlanks(s, next+1+strings.IndexByte("=:", s[next]))
		}
		if of && next+1 < len(s) && s[next] == ':' {
			return stated, skipBlanks(s, next+1)
		}
		if next == end {
			break
		}
		at, of = next, of && !strings.EqualFold(s[a:b], "pass") || word == "for" || word == "of"
	}
	return spaced, i
}

// skipNow skips what may stand between "is" and the value.
func skipNow(s string, i int) int {
	i = skipBlanks(s, skipWord(s, i, "now"))
	return skipBlanks(s, skipWord(s, i, ":"))
}

// skipWidth skips the width of a type of SQL or COBOL, as in VARCHAR(30).
func skipWidth(s string, i int) int {
	if i < len(s) && s[i] == '(' {
		if end := run(s, i+1, &digitSet, 6); end > i+1 && end < len(s) && s[end] == ')' {
			return end + 1
		}
	}
	return i
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
	return skipBlanks(d.s, next)
}

// isFlag reports whether the identifier at a is a flag of a command line.
func isFlag(s string, a int) bool {
	return a < len(s) && s[a] == '-' || a > 0 && s[a-1] == '-' && (a < 2 || spaceSet.has(s[a-2]) || s[a-2] == '-' || quoteSet.has(s[a-2]))
}
