// Package plain makes text of a change or a model plain: it shows hidden characters and
// breaks URLs, so that https://evil.example becomes https[:]//evil.example and
// www.evil.example www[.]evil.example. Other text stays as it is, because it may be code
// that a reader copies. Each output then escapes its own markup, mentions and links.
package plain

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text returns s without URLs and hidden characters, cut to limit characters.
func Text(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return breakLinks(visible(s)) })
}

// Line is [Text] on one line.
func Line(s string, limit int) string {
	return bounded(s, limit, func(s string) string { return strings.Join(strings.Fields(breakLinks(visible(s))), " ") })
}

// Markdown escapes what [Text] or [Line] returned for an output that renders Markdown, so
// that it reads the same there.
func Markdown(s string) string { return markdown.Replace(reference.ReplaceAllString(s, "(#)$1")) }

var (
	markdown = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "_", `\_`, "[", `\[`, "]", `\]`, "#", `\#`, "!", `\!`,
		"&", "&amp;", "<", "&lt;", ">", "&gt;", "@", "(at)", "~", "&#126;")
	reference = regexp.MustCompile(`#(\d)`) // to an issue or a change
)

// visible shows invisible characters. Reviewers should see them: a right-to-left override
// becomes [U+202E].
func visible(s string) string {
	return Show(strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\r\n", "\n"))
}

// Show replaces invisible characters by their code points, except line feeds, tabs, a byte
// order mark at the beginning, and those that scripts and emoji need: a joiner behind a
// letter without case or a symbol, and the selector of an emoji's picture.
func Show(s string) string {
	if !strings.ContainsFunc(s, Invisible) {
		return s
	}
	var out strings.Builder
	before := rune(0)
	for i, r := range s {
		isNeeded := false
		switch r {
		case '\n', '\t':
			isNeeded = true
		case '\ufeff':
			isNeeded = i == 0
		case '\u200c', '\u200d':
			isNeeded = before == '\ufe0f' || unicode.In(before, unicode.Lo, unicode.Mn, unicode.Mc, unicode.So, unicode.Sk) && !Invisible(before)
		case '\ufe0e', '\ufe0f':
			isNeeded = unicode.In(before, unicode.So, unicode.Sm)
		}
		switch {
		case !isNeeded && Invisible(r):
			fmt.Fprintf(&out, "[U+%04X]", r)
			r = 0 // nothing hides behind it
		default:
			out.WriteRune(r)
		}
		before = r
	}
	return out.String()
}

// Invisible reports whether r is drawn as nothing or as a blank, or changes how text is
// drawn: controls and formats, line separators that only some programs treat as one, the
// code points that Unicode lets fonts ignore, and letters and symbols that look blank.
func Invisible(r rune) bool {
	if r >= ' ' && r < 0x7f {
		return false
	}
	const brailleBlank, nullNotehead = '\u2800', '\U0001d159'
	return r == brailleBlank || r == nullNotehead ||
		unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

var (
	// scheme ends before a character that ends a link: "http://" in code is not a link.
	scheme = regexp.MustCompile(`(\w)://([^\s"'` + "`" + `<>)])`)
	www    = regexp.MustCompile(`(?i)(www)([.。．｡])`) // the dots of UTS 46
)

// breakLinks breaks what every program links. It leaves names with dots and addresses
// alone: in code, f.read and user@host are not links, and a reader copies code.
func breakLinks(s string) string {
	for range 2 { // the end of a match may begin the next one: a://b://c
		s = scheme.ReplaceAllString(s, "$1[:]//$2")
	}
	return www.ReplaceAllString(s, "$1[$2]")
}

// bounded cuts s to limit characters and appends how many are missing. It cuts before
// cleaning, so that a megabyte is cheap.
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
