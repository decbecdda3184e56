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

// Bounds of a finding's texts; a longer text is cut.
const (
	maxTitleBytes = 200
	maxTextBytes  = 4_000
)

// remarkCounts counts the model's remarks by anchor and by reason for dropping them. Reasons
// with a count of 0 have no entry.
type remarkCounts struct {
	Anchors map[review.Anchor]int     `json:"anchors,omitempty"`
	Dropped map[review.DropReason]int `json:"dropped,omitempty"`
	Fixes   map[review.DropReason]int `json:"fixes,omitempty"` // dropped replacements
}

func newRemarkCounts() remarkCounts {
	return remarkCounts{map[review.Anchor]int{}, map[review.DropReason]int{}, map[review.DropReason]int{}}
}

func (t remarkCounts) add(other remarkCounts) {
	for a, n := range other.Anchors {
		t.Anchors[a] += n
	}
	for r, n := range other.Dropped {
		t.Dropped[r] += n
	}
	for r, n := range other.Fixes {
		t.Fixes[r] += n
	}
}

func (t remarkCounts) drop(why review.DropReason, n int) {
	if n > 0 {
		t.Dropped[why] += n
	}
}

// findings turns the remarks on the part of q into findings, whose lines it computes, and
// counts the dropped remarks.
func (q question) findings(remarks []remark) (found []review.Finding, counts remarkCounts) {
	counts = newRemarkCounts()
	for _, m := range remarks {
		f, at := q.locate(m)
		if f != nil && f.inChange() {
			counts.Anchors[at.anchor]++
		}
		code := strings.Trim(withoutHeads(m.Replacement, nil), "\r\n")
		severe := m.Severity == review.SeverityCritical || m.Severity == review.SeverityHigh
		var why review.DropReason
		switch {
		case f == nil:
			why = review.DropUnknownPath
		case m.quotesOnlyPrompt(at):
			why = review.DropMarker
		case !f.inChange(), at.anchor == review.AnchorContext && !severe: // code that the change does not touch
			why = review.DropOutside
		case at.quote != "" && (squeeze(withoutHeads(m.Suggestion, nil)) == squeeze(at.quote) || code == at.quote):
			why = review.DropNoChange
		}
		if why != "" {
			counts.drop(why, 1)
			continue
		}
		if code != "" && (at.part || len(code) > maxTextBytes || cutMark.MatchString(code)) {
			counts.Fixes[review.DropFixPlace]++
			code = ""
		}
		found = append(found, review.Finding{
			Path: f.path, StartLine: at.start, EndLine: at.end, Severity: m.Severity, Category: m.Category, Confidence: m.Confidence,
			Title:       bounded(strings.Join(strings.Fields(m.Title), " "), maxTitleBytes),
			Explanation: bounded(strings.TrimSpace(m.Trigger+" "+m.Explanation), maxTextBytes),
			Suggestion:  bounded(m.Suggestion, maxTextBytes),
			Replacement: code,
			Quote:       bounded(at.quote, maxTextBytes),
			Before:      at.before,
			After:       at.after,
			Anchor:      at.anchor,
		})
	}
	return found, counts
}

func bounded(s string, n int) string {
	s, _ = clip(strings.Trim(s, "\r\n"), n, "text")
	return s
}

// locate returns the file and the place of m; the file is nil if it was not shown, and one of
// the context if the change does not have it. Redaction may give two files the same path: the
// quote distinguishes them. A path that was not shown is that of the only file of the part that
// has the quote, if it has it once.
func (q question) locate(m remark) (f *file, at place) {
	named := slices.Concat(q.part.named(m.Path), q.context.named(m.Path))
	if len(named) == 0 {
		for _, s := range q.part {
			if here := s.find(m.Quote, m.Line); here.quote != "" {
				named = append(named, s)
				if here.matches > 1 || len(named) > 1 {
					return nil, place{}
				}
			}
		}
	}
	for _, s := range named {
		here := s.find(m.Quote, m.Line)
		switch {
		case f == nil:
			f, at = s.file, here
		case at.anchor == review.AnchorFile && here.start != 0:
			at = here
			if s.file.inChange() {
				f = s.file
			}
		case here.heads:
			at.heads = true
		}
	}
	return f, at
}

// find returns the place of a quote. What looks like a head of the prompt is first looked for
// among the lines of s, because the author may have written it.
func (s section) find(quote string, hint float64) (at place) {
	lines := slices.Collect(strings.Lines(quote))
	quote = strings.Join(lines[:min(len(lines), 2*maxQuoteLines)], "") // blank lines included
	authors := withoutHeads(quote, func(l string) bool {
		_, _, found := chunk{s}.findLine(l)
		return found
	})
	none := withoutHeads(quote, nil)
	for _, q := range []string{quote, authors, none} {
		if at = anchor(s.hunks, q, hint); at.quote != "" {
			break
		}
	}
	at.heads = authors != none
	return at
}

// named returns the sections with the given path. Models shorten paths, so the
// end of a path from a slash on is accepted if it is unique.
func (c chunk) named(path string) []section {
	var exact, ending []section
	for _, s := range c {
		switch {
		case s.file.shown == path:
			exact = append(exact, s)
		case strings.HasSuffix(s.file.shown, "/"+strings.TrimLeft(path, "/")):
			ending = append(ending, s)
		}
	}
	if len(exact) == 0 && len(ending) == 1 && path != "" {
		return ending
	}
	return exact
}

// The text that the prompt adds to a change. A model that takes it for code
// reports defects that the code does not have.
var (
	redactedMark = regexp.MustCompile(`\[REDACTED\b`)
	cutMark      = regexp.MustCompile(`\[(?:line|text) cut: \d+ bytes more\]|=== (?:begin|end) [a-z]+ [0-9a-f]{8,}`)
	headLine     = regexp.MustCompile("^(?:```\\w*|@@ .*|check-code: [0-9a-f]*|file //.+ \\([a-z/]+, .+\\))\\s*$")
)

// withoutHeads removes the lines of a quote that look like heads of files and hunks, check
// codes and code fences, except those that isCode reports, if it is not nil.
func withoutHeads(quote string, isCode func(line string) bool) string {
	var out strings.Builder
	for l := range strings.Lines(quote) {
		if !headLine.MatchString(l) || isCode != nil && isCode(l) {
			out.WriteString(l)
		}
	}
	return out.String()
}

// quotesOnlyPrompt reports whether m is about text that the prompt added: the quote is nowhere
// in the change, or it has the end of a line that the prompt has cut there.
func (m remark) quotesOnlyPrompt(at place) bool {
	if at.quote != "" && !at.cut || at.heads {
		return false
	}
	return cutMark.MatchString(m.Quote) || redactedMark.MatchString(m.Quote) || strings.TrimSpace(m.Quote) != "" && strings.TrimSpace(withoutHeads(m.Quote, nil)) == ""
}

// A place is a range of lines of the new content; 0 is the whole file.
type place struct {
	start, end int
	anchor     review.Anchor
	quote      string // the code there, or the removed code, as in the change
	matches    int    // places that the quote matches as well as this one, itself included
	part       bool   // the model quoted a part of a line
	cut        bool   // the end of a line there is not shown
	heads      bool   // the author wrote a line of the quote that looks like a head of the prompt
	// before and after are the lines of the new content next to the quote.
	before, after string
}

const (
	// maxQuoteLines is how many lines of a quote are searched for: the work is this number
	// times the number of lines of the file.
	maxQuoteLines = 100
	// linesAround is how many lines before and after a finding are shown with it.
	linesAround = 3
)

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
	unmarked := make([]string, len(want))
	for i, l := range want {
		unmarked[i] = lineMarks.ReplaceAllString(l, "")
	}
	identical := func(have, want string) bool { return have == want }
	for _, try := range []struct {
		side  func(line) bool
		equal func(have, want string) bool
	}{{isNew, identical}, {isNew, equalExceptBlanks}, {isRemoved, equalExceptBlanks}, {isNew, contains}} {
		want := want
		found := search(hunks, try.side, want, try.equal)
		if len(found) == 0 {
			want = unmarked
			found = search(hunks, try.side, want, try.equal)
		}
		if len(found) == 0 {
			continue
		}
		best := slices.MinFunc(found, func(a, b match) int { return cmp.Compare(a.rank(hint), b.rank(hint)) })
		at := place{quote: best.text(), matches: len(found), cut: slices.ContainsFunc(best, func(l line) bool { return l.cut })}
		if best[0].mark == '-' {
			at.anchor = review.AnchorRemoved
			return at
		}
		at.start, at.end, at.anchor = best[0].number, best[len(best)-1].number, review.AnchorContext
		if best.added() {
			at.anchor = review.AnchorAdded
		}
		at.part = !slices.EqualFunc(best, want, func(l line, w string) bool { return equalExceptBlanks(l.text, w) })
		at.before, at.after = around(hunks, at.start, at.end)
		return at
	}
	return place{anchor: review.AnchorFile}
}

// around returns the lines of the new content next to others.
func around(hunks []hunk, start, end int) (before, after string) {
	for _, h := range hunks {
		for _, l := range h.lines {
			switch {
			case !isNew(l):
			case start-linesAround <= l.number && l.number < start:
				before += l.text + "\n"
			case end < l.number && l.number <= end+linesAround:
				after += l.text + "\n"
			}
		}
	}
	before, _ = clip(strings.TrimSuffix(before, "\n"), maxTextBytes, "text")
	after, _ = clip(strings.TrimSuffix(after, "\n"), maxTextBytes, "text")
	return before, after
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

func isNew(l line) bool     { return l.mark != '-' }
func isRemoved(l line) bool { return l.mark == '-' }

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

func (m match) text() string {
	lines := make([]string, len(m))
	for i, l := range m {
		lines[i] = l.text
	}
	return strings.Join(lines, "\n")
}
