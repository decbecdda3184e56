package review

import (
	"iter"
	"regexp"
	"strconv"
	"strings"
)

// A DiffLine is a line of the diff of a [File].
type DiffLine struct {
	// Mark is a blank, + or -, and @ for the head of a hunk. It is 0 for a line that no
	// diff has.
	Mark byte
	// Number is the number of the line in the new text; of a removed line, the number
	// of the line after it; of a head, the number of the first line of the hunk.
	Number int
	Text   string // without the mark and the line feed; of a head, the heading
	Row    int    // number of the line in the diff, from 1
}

var hunkHead = regexp.MustCompile(`^@@ -\d+(?:,\d+)? \+(\d{1,9})(?:,(\d+))? @@ ?(.*)$`)

// DiffLines yields the lines of a diff, without the notes about a missing line feed.
func DiffLines(diff string) iter.Seq[DiffLine] {
	return func(yield func(DiffLine) bool) {
		next, row := 0, 0
		for s := range strings.Lines(diff) {
			row++
			l := DiffLine{Number: next, Row: row, Text: strings.TrimSuffix(s, "\n")}
			head := hunkHead.FindStringSubmatch(l.Text)
			switch {
			case head != nil:
				next, _ = strconv.Atoi(head[1])
				if head[2] == "0" {
					next++ // a hunk without new lines stands after the line
				}
				l = DiffLine{'@', next, head[3], row}
			case l.Text == "", l.Text == "\r": // an unchanged empty line without its blank
				l.Mark = ' '
			case l.Text[0] == '\\':
				continue
			case strings.ContainsRune(" +-", rune(l.Text[0])):
				l.Mark, l.Text = l.Text[0], l.Text[1:]
			}
			if l.Mark == ' ' || l.Mark == '+' {
				next++
			}
			if !yield(l) {
				return
			}
		}
	}
}
