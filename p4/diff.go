package p4

import (
	"fmt"
	"regexp"
	"strings"

	"znkr.io/diff"
	"znkr.io/diff/textdiff"
)

// Diff returns the hunks of a unified diff with the given lines of context, without file
// headers. Every hunk header has both counts and, after them, the nearest heading above the
// hunk. Equal texts give "".
func Diff(before, after string, context int) string {
	lines, next, heading := splitLines(after), 0, ""
	var out strings.Builder
	for _, h := range hunks(before, after, context) {
		for ; next < h.LineNoY; next++ {
			if line := lines[next]; len(line) <= maxHeading && headings.MatchString(line) && !labels.MatchString(line) {
				heading = " " + strings.TrimSpace(line)
			}
		}
		fmt.Fprintf(&out, "@@ -%s +%s @@%s\n", hunkRange(h.LineNoX, h.EndLineNoX), hunkRange(h.LineNoY, h.EndLineNoY), heading)
		for _, e := range h.Edits {
			out.WriteByte(marks[e.Op])
			out.WriteString(e.Line)
			if !strings.HasSuffix(e.Line, "\n") {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return out.String()
}

// A heading begins at the margin with a letter, and is not a label. The code around the change
// has what the hunk is in: this is for hunks that it has no room for.
var (
	headings = regexp.MustCompile(`^[\pL_$][^;]*[^;\s]\s*$`)
	labels   = regexp.MustCompile(`^\w+:\s*$`)
)

// maxHeading is the longest heading in bytes. Stage llm cuts headings, behind redaction: a part
// of a secret may not be recognized.
const maxHeading = 640

var marks = [...]byte{diff.Match: ' ', diff.Delete: '-', diff.Insert: '+'}

// manyLines is the number of lines of both texts together up to which the shortest diff
// is searched for, in a time of n^1.5. In longer texts only the lines that occur once in
// each are aligned, in n log n. Over the 653 edits of the public Jam depot the search
// finds the minimum; the alignment alone marks 4% more lines.
const manyLines = 10_000

func hunks(before, after string, context int) []textdiff.Hunk[string] {
	options := []textdiff.Option{diff.Context(context), textdiff.IndentHeuristic()}
	if strings.Count(before, "\n")+strings.Count(after, "\n") > manyLines {
		options = append(options, diff.Fast())
	}
	return textdiff.Hunks(before, after, options...)
}

// hunkRange counts from 1, and from 0 for no lines, as GNU diff does.
func hunkRange(from, to int) string {
	return fmt.Sprintf("%d,%d", from+min(to-from, 1), to-from)
}

// An edit replaces lines [a, aEnd) of the old text by lines [b, bEnd) of the new
// one. Lines count from 0.
type edit struct{ a, aEnd, b, bEnd int }

// edits returns the edits that lead from one text to the other, in order.
func edits(before, after string) []edit {
	var all []edit
	for _, h := range hunks(before, after, 0) {
		all = append(all, edit{h.LineNoX, h.EndLineNoX, h.LineNoY, h.EndLineNoY})
	}
	return all
}

// splitLines keeps the line ends; only the last line may lack one.
func splitLines(s string) []string {
	lines := strings.SplitAfter(s, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// withEndsOf returns before with the byte order mark of after, and with the ends of those
// lines of after that are equal otherwise: a diff to after shows neither.
func withEndsOf(before, after string) string {
	before = withoutMark(before)
	if before != "" && strings.HasPrefix(after, byteOrderMark) {
		before = byteOrderMark + before
	}
	hasOneEnd := func(s string) bool { return strings.Count(s, "\r\n") == strings.Count(s, "\n") }
	if !strings.Contains(before, "\r\n") && !strings.Contains(after, "\r\n") || hasOneEnd(before) && hasOneEnd(after) {
		return before
	}
	plain := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	old, lines := splitLines(before), splitLines(after)
	var aligned strings.Builder
	at := 0
	for _, e := range edits(plain(before), plain(after)) {
		aligned.WriteString(strings.Join(lines[at:e.b], "") + strings.Join(old[e.a:e.aEnd], ""))
		at = e.bEnd
	}
	return aligned.String() + strings.Join(lines[at:], "")
}

func withoutMark(s string) string { return strings.TrimPrefix(s, byteOrderMark) }
