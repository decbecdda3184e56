package redaction

import "strings"

// userBefore masks the user whose password stands right after: together they
// are what a thief needs.
func (d *detector) userBefore(n nameRef) {
	from := max(0, n.begin-maxUserGap)
	if i := strings.LastIndex(d.s[from:n.begin], sectionEnd); i >= 0 {
		from += i + len(sectionEnd)
	}
	text := d.s[from:n.begin]
	for range 3 {
		i := lastFold(text, "user")
		if i < 0 || d.userAt(n, from, i) {
			return
		}
		text = text[:i]
	}
}

// lastFold is the offset of the last word of s, whatever its case, or -1. word
// is in small letters.
func lastFold(s, word string) int {
	for i := len(s) - len(word); i >= 0; i-- {
		if foldByte(s[i]) == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}

// userAt masks the value of the name at s[from+i], if it is one, and reports so.
func (d *detector) userAt(n nameRef, from, i int) bool {
	end := run(d.s, from+i, &identSet, maxName)
	if rest := d.s[min(end, n.begin):n.begin]; len(rest) >= 3 && strings.EqualFold(rest[:3], " id") {
		end += 3
	}
	l, at := d.linkAfter(from+i, end)
	if l != assigned && l != spaced && l != paired || at >= n.begin {
		return false
	}
	lit, ok := d.literalAt(at, l)
	if !ok || lit.end > n.begin || lit.end-lit.start < 2 {
		return false
	}
	name := d.s[lit.start:lit.end]
	if isPlaceholder(name) || standsFor(name) || isSource(name) || isProse(name) {
		return false
	}
	if !lit.quoted && l != spaced && !wholeLine(d.s, at) && !inConnectionString(d.s, lit.end) {
		return false
	}
	d.found("username", "user of a password", lit.start, lit.end)
	return true
}

// maxUserGap is how far a user may stand before the name of its password.
const maxUserGap = 160

// mailServerBefore masks the mail server that a password stands near: the
// server, the user and the password are SMTP credentials together.
func (d *detector) mailServerBefore(n nameRef) {
	from := max(0, n.begin-maxServerGap)
	if !strings.Contains(d.s[from:n.begin], "smtp.") {
		return
	}
	if i := strings.LastIndex(d.s[from:n.begin], sectionEnd); i >= 0 {
		from += i + len(sectionEnd)
	}
	i := from + strings.LastIndex(d.s[from:n.begin], "smtp.")
	if i <= from || !quoteSet.has(d.s[i-1]) || !strings.Contains(strings.ToLower(d.s[lineBegin(d.s, i):i]), "host") {
		return
	}
	if end := run(d.s, i, &hostSet, 255); end < n.begin && d.s[end] == d.s[i-1] {
		d.found("mail-host", "server of a password", i, end)
	}
}

// maxServerGap is how far a mail server may stand before the name of its
// password: some lines with comments.
const maxServerGap = 512
