package llm

import (
	"math"
	"regexp"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
)

// A place is where a quote stands in the new content. The zero place is the
// file as a whole.
type place struct {
	start, end int
	anchor     review.Anchor
	// quote is the code there as the change has it; also set for removed code,
	// which has no place in the new content.
	quote string
}

// anchor finds the place of quote in what the model was shown of a file. Line
// numbers come from the diff alone: hint, the model's own idea, only chooses
// among several places. A quote of removed code, or one that is not found, is
// about the whole file.
func anchor(hunks []hunk, quote string, hint float64) place {
	want := codeLines(quote)
	if !telling(want) {
		return place{anchor: review.AnchorFile}
	}
	unmarked := withoutMarks(want)
	for _, equal := range []func(have, want string) bool{identical, sameButBlanks} {
		for _, w := range [][]string{want, unmarked} {
			if found := search(hunks, isNew, w, equal); len(found) > 0 {
				return nearest(found, hint)
			}
		}
	}
	for _, w := range [][]string{want, unmarked} {
		if found := search(hunks, isRemoved, w, sameButBlanks); len(found) > 0 {
			return place{quote: found[0].text(), anchor: review.AnchorRemoved}
		}
	}
	if found := search(hunks, isNew, unmarked, holds); len(found) > 0 {
		return nearest(found, hint)
	}
	return place{anchor: review.AnchorFile}
}

// codeLines returns the lines of s that are not blank: models drop and add
// blank ones.
func codeLines(s string) []string {
	var out []string
	for l := range strings.Lines(s) {
		if strings.TrimSpace(l) != "" {
			out = append(out, strings.TrimRight(l, "\r\n"))
		}
	}
	return out
}

// telling reports whether a quote is more than brackets, which stand everywhere.
func telling(lines []string) bool {
	return strings.ContainsFunc(strings.Join(lines, ""), func(r rune) bool {
		return unicode.IsLetter(r) || unicode.IsDigit(r)
	})
}

// marks is what the prompt puts before a line of code; models copy it. The
// blank after the mark may be lost.
var marks = regexp.MustCompile(`^ *\d* *[-+] ?|^ *\d+ {2,3}`)

func withoutMarks(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = marks.ReplaceAllString(l, "")
	}
	return out
}

func isNew(l line) bool     { return l.mark != '-' }
func isRemoved(l line) bool { return l.mark == '-' }

func identical(have, want string) bool { return have == want }

func sameButBlanks(have, want string) bool { return squeeze(have) == squeeze(want) }

// holds accepts a part of a line, as long as it is not so short that it could
// stand anywhere.
func holds(have, want string) bool {
	want = squeeze(want)
	return len(want) >= 6 && strings.Contains(squeeze(have), want)
}

func squeeze(s string) string { return strings.Join(strings.Fields(s), " ") }

// A match is a run of lines that a quote fits, blank lines left out.
type match []line

// search returns every run of lines on one side of a hunk that equals want.
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
			if run := match(lines[i : i+len(want)]); run.fits(want, equal) {
				found = append(found, run)
			}
		}
	}
	return found
}

func (m match) fits(want []string, equal func(have, want string) bool) bool {
	for i, l := range m {
		if !equal(l.text, want[i]) {
			return false
		}
	}
	return true
}

// nearest chooses among matches: one with an added line before one without, and
// of these the one closest to the hint.
func nearest(found []match, hint float64) place {
	best := found[0]
	for _, m := range found[1:] {
		if m.rank(hint) < best.rank(hint) {
			best = m
		}
	}
	at := place{start: best[0].number, end: best[len(best)-1].number, quote: best.text(), anchor: review.AnchorContext}
	if best.added() {
		at.anchor = review.AnchorAdded
	}
	return at
}

// rank is smaller for the better match.
func (m match) rank(hint float64) float64 {
	far := m.distance(hint)
	if !m.added() {
		far += math.MaxInt32
	}
	return far
}

// distance is how far the hint is from m, and 0 for all when there is none, so
// that the first match wins.
func (m match) distance(hint float64) float64 {
	first, last := float64(m[0].number), float64(m[len(m)-1].number)
	if hint < 1 || first <= hint && hint <= last {
		return 0
	}
	return min(math.Abs(first-hint), math.Abs(last-hint), math.MaxInt32-1)
}

func (m match) added() bool {
	for _, l := range m {
		if l.mark == '+' {
			return true
		}
	}
	return false
}

func (m match) text() string {
	lines := make([]string, len(m))
	for i, l := range m {
		lines[i] = l.text
	}
	return strings.Join(lines, "\n")
}
