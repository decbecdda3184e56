package llm

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/criticizer/criticizer/redaction"
)

// Bounds of rendered text. A longer text is cut, with a note.
const (
	maxAboutBytes   = 2_000 // description and jobs of a changelist, in every call
	maxLineBytes    = 2_000 // a longer line is usually data and would displace code
	maxHeadingBytes = 200
)

// about renders the description and jobs of a change.
func about(c redaction.Change) string {
	var text strings.Builder
	text.WriteString(c.Description.String())
	for _, job := range c.Jobs {
		text.WriteString("\n\njob: " + job.String())
	}
	clipped, _ := clip("description\n"+barred(strings.TrimSpace(text.String())), maxAboutBytes, "text")
	return strings.TrimSuffix(clipped, "\n") + "\n"
}

// barred puts "| " before every line of s, so that none can pass for a line of
// the prompt.
func barred(s string) string {
	var out strings.Builder
	for l := range strings.Lines(s) {
		out.WriteString("| " + visible(strings.TrimRight(l, "\r\n")) + "\n")
	}
	return out.String()
}

func (f *file) head() string { return "file " + f.shown + " (" + f.kind + ")\n" }

func (h hunk) head() string { return "@@ " + h.heading + "\n" }

func (l line) render() string {
	if l.mark == '-' {
		return "       - " + l.text + "\n"
	}
	return fmt.Sprintf("%6d %c %s\n", l.number, l.mark, l.text)
}

// visible replaces invisible characters by their code points, so that no text
// holds a message that only a model reads, or ends a line of the prompt.
func visible(s string) string {
	if !strings.ContainsFunc(s, invisible) {
		return s
	}
	var out strings.Builder
	for _, r := range s {
		if invisible(r) {
			fmt.Fprintf(&out, "[U+%04X]", r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

// invisible reports control and format characters, the line ends of Unicode, and
// the variation selectors, which can encode bytes. Tabs, the byte order mark,
// and the joiners that scripts and emoji need are kept.
func invisible(r rune) bool {
	switch r {
	case '\t', '\ufeff', '\u200c', '\u200d':
		return false
	}
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r >= 0xe0100 && r <= 0xe01ef
}

// clip cuts s to at most n bytes, at a rune boundary, and appends a note.
func clip(s string, n int, what string) (clipped string, cut bool) {
	if len(s) <= n {
		return s, false
	}
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return fmt.Sprintf("%s [%s cut: %d bytes more]", s[:n], what, len(s)-n), true
}
