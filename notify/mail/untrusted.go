package mail

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Everything a change or a model wrote passes through block or line before it
// reaches a template: it may hold terminal escapes, characters that reverse
// the order of text, links somebody wants clicked, or a megabyte.

// block makes text of several lines fit to show, at most limit runes of it.
func block(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return defang(visible(s)) })
}

// line makes text fit to show on one line, at most limit runes of it.
func line(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return strings.Join(strings.Fields(defang(visible(s))), " ") })
}

// visible replaces what cannot be seen or changes what is seen, which in a
// review of code is worth seeing: a right-to-left override becomes [U+202E].
func visible(s string) string {
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n")
	var out strings.Builder
	for _, r := range s {
		if hidden(r) {
			fmt.Fprintf(&out, "[U+%04X]", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// hidden reports control and format characters, and the line separators only
// some programs obey. The two joiners stay: scripts and emoji need them.
func hidden(r rune) bool {
	switch r {
	case '\n', '\t', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

var (
	linkPattern = regexp.MustCompile(`(?i)://(?:[^\s/]*[^\s/.,;:]|\S)|\b(?:www\.|mailto:|tel:)[^\s/]*[^\s/.,;:]`)
	defanger    = strings.NewReplacer(":", "[:]", ".", "[.]")
)

// defang writes links so that no mail program makes them clickable:
// https[:]//evil[.]example/path.
func defang(s string) string {
	return linkPattern.ReplaceAllStringFunc(s, func(link string) string { return defanger.Replace(link) })
}

// bounded cleans s and cuts it to limit runes, and says how much is missing.
// It cuts before, too, so that a megabyte costs nothing.
func bounded(s string, limit int, clean func(string) string) string {
	head, tail := split(s, limit)
	head, rest := split(clean(head), limit)
	if n := utf8.RuneCountInString(tail) + utf8.RuneCountInString(rest); n > 0 {
		return head + fmt.Sprintf("… [%d more characters]", n)
	}
	return head
}

// split cuts s after n runes.
func split(s string, n int) (head, tail string) {
	for i := range s {
		if n == 0 {
			return s[:i], s[i:]
		}
		n--
	}
	return s, ""
}
