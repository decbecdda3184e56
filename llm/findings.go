package llm

import (
	"regexp"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/review"
)

// Bounds of a finding's texts; a longer text is cut.
const (
	maxTitleBytes = 200
	maxTextBytes  = 4_000
)

// remarkCounts counts the model's remarks by anchor and by reason for dropping them.
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

// drop counts n dropped remarks. Reasons with a count of 0 have no entry.
func (t remarkCounts) drop(why review.DropReason, n int) {
	if n > 0 {
		t.Dropped[why] += n
	}
}

// findings turns the remarks on the part of q into findings, whose lines it computes, and
// counts the dropped remarks.
func (q question) findings(remarks []remark) ([]review.Finding, remarkCounts) {
	var found []review.Finding
	counts := newRemarkCounts()
	for _, m := range remarks {
		f, at := q.locate(m)
		if f != nil && f.inChange() {
			counts.Anchors[at.anchor]++
		}
		if why := m.dropReason(f, at); why != "" {
			counts.drop(why, 1)
			continue
		}
		code := m.code()
		if code != "" && (at.part || len(code) > maxTextBytes || cutMark.MatchString(code)) {
			counts.Fixes[review.DropFixPlace]++
			code = ""
		}
		found = append(found, review.Finding{
			Path:        f.path,
			StartLine:   at.start,
			EndLine:     at.end,
			Severity:    m.Severity,
			Category:    m.Category,
			Confidence:  m.Confidence,
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

// code returns the replacement of the quoted code, which nothing has checked.
func (m remark) code() string { return strings.Trim(withoutHeads(m.Replacement, nil), "\r\n") }

// dropReason returns why m, located in f, is not a finding, or "". Code that the
// change does not touch is only reported if the defect is severe.
func (m remark) dropReason(f *file, at place) review.DropReason {
	severe := m.Severity == review.SeverityCritical || m.Severity == review.SeverityHigh
	switch {
	case f == nil:
		return review.DropUnknownPath
	case m.quotesOnlyPrompt(at):
		return review.DropMarker
	case !f.inChange(), at.anchor == review.AnchorContext && !severe:
		return review.DropOutside
	case at.quote != "" && (squeeze(withoutHeads(m.Suggestion, nil)) == squeeze(at.quote) || m.code() == at.quote):
		return review.DropNoChange
	}
	return ""
}

// locate returns the file and the place of m; the file is nil if it was not
// shown, and one of the context if the change does not have it. Redaction may give
// two files the same path: the quote distinguishes them.
func (q question) locate(m remark) (f *file, at place) {
	for _, s := range slices.Concat(q.part.named(m.Path), q.context.named(m.Path)) {
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
	author := func(l string) bool {
		_, _, found := chunk{s}.findLine(l)
		return found
	}
	for _, q := range []string{quote, withoutHeads(quote, author), withoutHeads(quote, nil)} {
		if at = anchor(s.hunks, q, hint); at.quote != "" {
			break
		}
	}
	at.heads = withoutHeads(quote, author) != withoutHeads(quote, nil)
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
