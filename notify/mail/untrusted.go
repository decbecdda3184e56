package mail

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Every text from a change or a model passes clean or cleanLine before it reaches
// a template. It may contain terminal escapes, characters that reverse the
// order of text, links to hostile sites, or a megabyte.

// clean returns s with hidden characters made visible and links disabled, cut to
// limit characters.
func clean(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return defang(visible(s)) })
}

// cleanLine is clean on one line.
func cleanLine(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return strings.Join(strings.Fields(defang(visible(s))), " ") })
}

// visible replaces characters that are invisible or change how text is
// displayed. Reviewers should see them: a right-to-left override becomes
// [U+202E].
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

// hidden reports whether r is a control or format character, or a line
// separator that only some programs treat as one. The two joiners are allowed:
// scripts and emoji need them.
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

// defang rewrites links so that no mail program makes them clickable:
// https[:]//evil[.]example/path.
func defang(s string) string {
	return linkPattern.ReplaceAllStringFunc(s, func(link string) string { return defanger.Replace(link) })
}

// bounded cuts s to limit characters and appends how many are missing. It cuts
// before cleaning too, so that a megabyte is cheap.
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
