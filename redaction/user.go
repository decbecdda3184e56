package redaction

import "strings"

// userBefore masks the user that stands right before its password: the two
// together are a credential.
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

// lastFold returns the offset of the last word in s, in any case, or -1. word is
// in small letters.
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
	name := d.text(lit)
	if isPlaceholder(name) || isReference(name) || isSource(name) || isProse(name) {
		return false
	}
	if !lit.quoted && bind != spaced && !wholeLine(d.s, at) && !inConnectionString(d.s, lit.end) {
		return false
	}
	d.report("username", "user of a password", lit.start, lit.end)
	return true
}

// How far before the name of a password a user and a mail server may be.
const (
	maxUserGap   = 160
	maxServerGap = 512
)

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
