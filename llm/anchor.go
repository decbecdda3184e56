package llm

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
)

// A place is a range of lines of the new content; 0 is the whole file.
type place struct {
	start, end int
	anchor     review.Anchor
	quote      string // the code there, or the removed code, as in the change
	part       bool   // the model quoted a part of a line
	cut        bool   // the end of a line there is not shown
	heads      bool   // the author wrote a line of the quote that looks like a head of the prompt
	// before and after are the lines of the new content next to the quote.
	before, after string
}

// maxQuoteLines is how many lines of a quote are searched for: the work is this number
// times the number of lines of the file.
const maxQuoteLines = 100

// anchor returns the place of quote in the hunks of a file. Line numbers come
// from the diff: hint, the model's line number, only selects among several
// matches. The place of removed code, or of a quote that is not found, is the
// whole file.
func anchor(hunks []hunk, quote string, hint float64) place {
	want := codeLines(quote)
	want = want[:min(len(want), maxQuoteLines)]
	if !hasCode(want) {
		return place{anchor: review.AnchorFile}
	}
	unmarked := withoutLineMarks(want)
	for _, equal := range []func(have, want string) bool{identical, equalExceptBlanks} {
		for _, w := range [][]string{want, unmarked} {
			if found := search(hunks, isNew, w, equal); len(found) > 0 {
				return nearest(found, hint).within(hunks)
			}
		}
	}
	for _, w := range [][]string{want, unmarked} {
		if found := search(hunks, isRemoved, w, equalExceptBlanks); len(found) > 0 {
			return place{quote: found[0].text(), anchor: review.AnchorRemoved, cut: found[0].cut()}
		}
	}
	if found := search(hunks, isNew, unmarked, contains); len(found) > 0 {
		at := nearest(found, hint)
		at.part = true
		return at.within(hunks)
	}
	return place{anchor: review.AnchorFile}
}

// codeLines returns the lines of s without blank ones, which models drop and add.
func codeLines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		if strings.TrimSpace(l) != "" {
			out = append(out, strings.TrimRight(l, "\r\n"))
		}
	}
	return out
}

// hasCode reports whether a quote holds more than brackets, which match anywhere.
func hasCode(lines []string) bool {
	return strings.ContainsFunc(strings.Join(lines, ""), func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}

// lineMarks matches the number and mark that the prompt puts before a line of
// code, which models copy, sometimes without the blank after the mark.
var lineMarks = regexp.MustCompile(`^ *\d* *[-+] ?|^ *\d+ {2,3}`)

func withoutLineMarks(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = lineMarks.ReplaceAllString(l, "")
	}
	return out
}

func isNew(l line) bool     { return l.mark != '-' }
func isRemoved(l line) bool { return l.mark == '-' }

func identical(have, want string) bool { return have == want }

func equalExceptBlanks(have, want string) bool { return squeeze(have) == squeeze(want) }

// contains accepts a part of a line if it is long enough to be specific.
func contains(have, want string) bool {
	want = squeeze(want)
	return len(want) >= 6 && strings.Contains(squeeze(have), want)
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// A match is a sequence of lines that a quote matches, without blank lines.
type match []line

// search returns every sequence of lines on one side of a hunk that equals want.
func search(hunks []hunk, side func(line) bool, want []string, equal func(have, want string) bool) []match {
	var found []match
	for _, h := range hunks {
		var lines []line
		for _, l := range h.lines {
			if side(l) && strings.TrimSpace(l.text) != "" {
				lines = append(lines, l)
			}
		}
		for i := 0; i+len(want) <= len(lines); i++ {
			if m := lines[i : i+len(want)]; slices.EqualFunc(m, want, func(l line, w string) bool { return equal(l.text, w) }) {
				found = append(found, m)
			}
		}
	}
	return found
}

// nearest selects a match with an added line before one without, and of these the
// one closest to the hint.
func nearest(found []match, hint float64) place {
	best := slices.MinFunc(found, func(a, b match) int { return cmp.Compare(a.rank(hint), b.rank(hint)) })
	at := place{start: best[0].number, end: best[len(best)-1].number, quote: best.text(), anchor: review.AnchorContext, cut: best.cut()}
	if best.added() {
		at.anchor = review.AnchorAdded
	}
	return at
}

// linesAround is how many lines before and after a finding are shown with it.
const linesAround = 3

// within returns at with the lines next to it.
func (at place) within(hunks []hunk) place {
	var before, after []string
	for _, h := range hunks {
		for _, l := range h.lines {
			switch {
			case !isNew(l):
			case at.start-linesAround <= l.number && l.number < at.start:
				before = append(before, l.text)
			case at.end < l.number && l.number <= at.end+linesAround:
				after = append(after, l.text)
			}
		}
	}
	at.before, _ = clip(strings.Join(before, "\n"), maxTextBytes, "text")
	at.after, _ = clip(strings.Join(after, "\n"), maxTextBytes, "text")
	return at
}

// rank returns a smaller value for a better match: its distance from the hint, more if it
// has no added line. Without a hint the distance is 0, so that the first match is selected.
func (m match) rank(hint float64) float64 {
	first, last := float64(m[0].number), float64(m[len(m)-1].number)
	far := 0.0
	if hint >= 1 && (hint < first || last < hint) {
		far = min(math.Abs(first-hint), math.Abs(last-hint), math.MaxInt32-1)
	}
	if !m.added() {
		far += math.MaxInt32
	}
	return far
}

func (m match) added() bool {
	return slices.ContainsFunc(m, func(l line) bool { return l.mark == '+' })
}

func (m match) cut() bool {
	return slices.ContainsFunc(m, func(l line) bool { return l.cut })
}

func (m match) text() string {
	lines := make([]string, len(m))
	for i, l := range m {
		lines[i] = l.text
	}
	return strings.Join(lines, "\n")
}
