package llm

import (
	"regexp"
	"slices"

	"github.com/criticizer/criticizer/review"
)

// An objection is what the second look says about one finding. The schema says
// what it has.
type objection struct {
	Finding  int    `json:"finding"` // its number in the list, from 1
	Verdict  string `json:"verdict"` // keep, drop or lower
	Severity string `json:"severity"`
	Evidence string `json:"evidence"`
	Reason   string `json:"reason"`
}

// A verdictOn is an objection after its evidence was looked for: no word of the
// model is left in it.
type verdictOn struct {
	Finding  int             `json:"finding"`
	Drop     bool            `json:"drop,omitempty"`
	Severity review.Severity `json:"severity,omitempty"` // that it is lowered to
	Rejected bool            `json:"rejected,omitempty"` // there is no evidence
}

// judged turns objections into verdicts, the first one on each finding.
func judged(objections []objection, l look, found []candidate, part chunk) []verdictOn {
	var out []verdictOn
	for _, o := range objections {
		known := o.Finding >= 1 && o.Finding <= len(l.findings)
		if !known || slices.ContainsFunc(out, func(v verdictOn) bool { return v.Finding == o.Finding }) {
			continue
		}
		f := found[l.findings[o.Finding-1]].Finding
		v := verdictOn{Finding: o.Finding}
		switch lower := review.Severity(o.Severity); {
		case o.Verdict == "keep":
			continue
		case !part.proves(o.Evidence, f):
			v.Rejected = true
		case o.Verdict == "drop":
			v.Drop = true
		case rank(lower) > rank(f.Severity):
			v.Severity = lower
		default: // lowered to what it is, or raised
			v.Rejected = true
		}
		out = append(out, v)
	}
	return out
}

// apply carries verdicts out.
func apply(verdicts []verdictOn, l look, found []candidate, check *review.Check) {
	for _, v := range verdicts {
		f := &found[l.findings[v.Finding-1]]
		switch {
		case v.Rejected:
			check.Rejected++
		case v.Drop:
			f.refuted = true
			check.Removed++
		default:
			f.Severity = v.Severity
			check.Lowered++
		}
	}
}

// commentLine is a line that states something and does nothing: what the author
// says about code, or to its reviewers, proves nothing.
var commentLine = regexp.MustCompile(`^\s*(//|#|/\*|\*|--|;|<!--|%|"""|''')`)

// proves reports whether evidence is code that c shows, with a line at least
// besides the code that f is about.
func (c chunk) proves(evidence string, f review.Finding) bool {
	flagged := squeezed(codeLines(f.Quote))
	var other []string
	for _, want := range codeLines(withoutHeads(evidence)) {
		shown, ok := c.shows(want)
		if !ok {
			return false
		}
		if !slices.Contains(flagged, squeeze(shown)) && !commentLine.MatchString(shown) {
			other = append(other, shown)
		}
	}
	return telling(other)
}

func squeezed(lines []string) []string {
	out := make([]string, len(lines))
	for i, l := range lines {
		out[i] = squeeze(l)
	}
	return out
}

// shows finds the line that want quotes, with or without its number and mark.
func (c chunk) shows(want string) (string, bool) {
	unmarked := marks.ReplaceAllString(want, "")
	for _, s := range c {
		for _, h := range s.hunks {
			for _, l := range h.lines {
				if sameButBlanks(l.text, want) || sameButBlanks(l.text, unmarked) {
					return l.text, true
				}
			}
		}
	}
	return "", false
}
