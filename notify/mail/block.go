package mail

import (
	"strings"
	"unicode/utf8"
)

// A block is a part of what a model wrote about a finding: prose, or code that it
// fenced or indented.
type block struct {
	Code bool
	Text string
}

// maxBlocks bounds the blocks of one text, and thereby its HTML.
const maxBlocks = 10

// splitBlocks splits cleaned text into blocks. Indented lines are code after an
// empty line or a colon; otherwise they continue a list.
func splitBlocks(text string) []block {
	var all []block
	add := func(code bool, l string) {
		if last := len(all) - 1; last >= 0 && all[last].Code == code || last == maxBlocks-1 {
			all[last].Text += "\n" + l
			return
		}
		all = append(all, block{code, l})
	}
	fenced, previous := false, ""
	for l := range strings.SplitSeq(text, "\n") {
		switch {
		case isFence(l):
			fenced = !fenced
		case fenced, isIndented(l) && (previous == "" || strings.HasSuffix(previous, ":") || len(all) > 0 && all[len(all)-1].Code):
			add(true, l)
		case strings.TrimSpace(l) == "" && len(all) > 0:
			add(all[len(all)-1].Code, "")
		default:
			add(false, l)
		}
		previous = strings.TrimSpace(l)
	}
	return trimBlocks(all)
}

func isFence(l string) bool {
	mark, rest, ok := strings.Cut(strings.TrimSpace(l), "```")
	return ok && mark == "" && !strings.Contains(rest, "`")
}

func isIndented(l string) bool { return strings.HasPrefix(l, "  ") || strings.HasPrefix(l, "\t") }

// trimBlocks removes empty blocks, and the indentation that all lines of a code
// block share.
func trimBlocks(all []block) (kept []block) {
	for _, b := range all {
		if b.Text = strings.Trim(b.Text, "\n"); strings.TrimSpace(b.Text) == "" {
			continue
		}
		if b.Code {
			b.Text = strings.Join(dedent(strings.Split(b.Text, "\n")), "\n")
		}
		kept = append(kept, b)
	}
	return kept
}

// renderText returns blocks as text, indented by n blanks, code by n+2. Lines of
// code are not wrapped.
func renderText(n int, all []block) string {
	var out []string
	for _, b := range all {
		if !b.Code {
			out = append(out, wrap(n, b.Text))
			continue
		}
		indent := strings.Repeat(" ", n+2)
		out = append(out, indent+strings.ReplaceAll(b.Text, "\n", "\n"+indent))
	}
	return strings.Join(out, "\n\n")
}

// textWidth is the width of the text part: the most that RFC 5322 recommends, so
// that descriptions keep their lines.
const textWidth = 78

// wrap indents text by n blanks, keeps the indentation of its lines, and breaks
// them at textWidth.
func wrap(n int, text string) string {
	var out []string
	for l := range strings.SplitSeq(text, "\n") {
		own := len(l) - len(strings.TrimLeft(l, " "))
		out = append(out, wrapLine(strings.Repeat(" ", n+min(own, textWidth/2)), l)...)
	}
	return strings.Join(out, "\n")
}

// wrapLine breaks one line at blanks. A word that does not fit gets its own line.
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
