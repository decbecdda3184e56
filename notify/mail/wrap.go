package mail

import (
	"strings"
	"unicode/utf8"
)

// textWidth is where the text part breaks its lines: the most that RFC 5322 would
// like, so that descriptions stay as they were typed.
const textWidth = 78

// wrap indents text by n blanks and breaks its lines at textWidth. What a line
// is indented by itself is kept.
func wrap(n int, text string) string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		own := len(l) - len(strings.TrimLeft(l, " "))
		out = append(out, wrapLine(strings.Repeat(" ", n+min(own, textWidth/2)), l)...)
	}
	return strings.Join(out, "\n")
}

// wrapLine breaks one line at blanks; a longer word stands alone.
func wrapLine(indent, l string) []string {
	var lines []string
	current := ""
	for word := range strings.FieldsSeq(l) {
		switch {
		case current == "":
			current = indent + word
		case utf8.RuneCountInString(current)+1+utf8.RuneCountInString(word) <= textWidth:
			current += " " + word
		default:
			lines = append(lines, current)
			current = indent + word
		}
	}
	return append(lines, current)
}
