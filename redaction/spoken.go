package redaction

import "strings"

// What people say of passwords, in comments, descriptions and pages.

// isSpoken reports whether a word of prose can be nothing but a password: one
// that somebody made up, with a mark or capitals among its letters and digits.
func isSpoken(text string) bool {
	if len(text) < 8 || !isAlnum(text[0]) || strings.ContainsAny(text, "()=<>[]{};:,\"'`/|\\") || !human(text) {
		return false
	}
	sh := shapeOf(text)
	return sh.digit > 0 && (countIn(text, &passwordMarks) > 0 || sh.digit > 1 && sh.upper > 0 && sh.lower > 0 && !wordsOnly(text))
}

// wordsOnly reports whether text is dull words with numbers, as names are.
func wordsOnly(text string) bool { return dullWords(text, len(text)) }

// spokenWord is the word at i without what ends a sentence, if it is a password.
func spokenWord(s string, i int) (literal, bool) {
	end := run(s, i, &notBlank, maxName)
	text := strings.TrimRight(s[i:end], ".,;:?)\"'`")
	return literal{i, i + len(text), false, i + len(text)}, text != "" && isSpoken(text)
}

// spokenAfter is where the password stands that a phrase tells whose name for
// it ends at i: "password X", "password to X", "password (X)", "password (for y): X".
func spokenAfter(s string, i int) (at int, ok bool) {
	at = gap(s, i)
	if at == i || at >= len(s) {
		return 0, false
	}
	if s[at] == '(' {
		if end := strings.IndexAny(s[at:min(len(s), at+maxAside)], ")\n"); end > 0 && strings.HasPrefix(s[at+end:], "): ") {
			at = gap(s, at+end+len("):"))
		} else {
			at++
		}
	}
	for _, word := range []string{"to ", "from "} {
		if rest, ok := strings.CutPrefix(s[at:], word); ok {
			at = gap(s, len(s)-len(rest))
			break
		}
	}
	if at >= len(s) {
		return 0, false
	}
	_, ok = spokenWord(s, at)
	return at, ok
}

// maxAside bounds what a phrase says in parentheses of a password.
const maxAside = 40

// spokenBefore masks the password that a phrase tells before the name n, "X as
// password", and the second of two, "password from X to Y".
func (d *detector) spokenBefore(n nameRef) {
	s, i := d.s, n.begin
	if rest := strings.TrimSuffix(s[max(0, i-maxAside):i], "the "); strings.HasSuffix(rest, " as ") {
		end := i - (len(s[max(0, i-maxAside):i]) - len(rest)) - len(" as ")
		d.spoken(n, runBack(s, end, &notBlank, maxAside))
	}
	if at := gap(s, n.end); strings.HasPrefix(s[at:], "from ") {
		at = run(s, gap(s, at+len("from ")), &notBlank, maxName)
		if strings.HasPrefix(s[at:], " to ") {
			d.spoken(n, at+len(" to "))
		}
	}
}

func (d *detector) spoken(n nameRef, i int) {
	if lit, ok := spokenWord(d.s, i); ok {
		d.found(classOf(n), "said", lit.start, lit.end)
	}
}

// spokenPair masks the password of a user that stands before it at at: "user /
// password", where n names the two together.
func (d *detector) spokenPair(n nameRef, at int) bool {
	s := d.s
	both := isPairName(n.ident)
	if !both && n.strength == strongName && n.begin > 0 && s[n.begin-1] == '/' {
		both = endsFold(s[:n.begin-1], "user") || endsFold(s[:n.begin-1], "username") || endsFold(s[:n.begin-1], "login")
	}
	user := run(s, at, &identSet, maxAside)
	slash := gap(s, user)
	if !both || user-at < 2 || slash >= len(s) || s[slash] != '/' {
		return false
	}
	begin := gap(s, slash+1)
	end := run(s, begin, &notBlank, maxName)
	text := strings.TrimRight(s[begin:end], ".,;:)\"'`")
	if strings.IndexByte(text, '/') >= 0 || !human(text) && !(isMixed(text) && slash > user) {
		return false
	}
	d.found("password", "user and password", begin, begin+len(text))
	return true
}
