package post

import (
	"strconv"

	"github.com/criticizer/criticizer/review"
)

// Outcome returns the outcome of r in a few words, and whether a model has read the change. Only
// a clean review by a model reads as clean.
func Outcome(r review.Report) string {
	if r.StandIn {
		return "Read by a stand-in, not by a language model, " + Count(len(r.Findings), "finding")
	}
	return Headline(r)
}

// Headline returns the outcome of r in a few words.
func Headline(r review.Report) string {
	findings := Count(len(r.Findings), "finding")
	switch r.Outcome {
	case review.OutcomeClean:
		if credited, _ := r.Tally().In(review.LinesCredited); r.Tally().Begun+credited == 0 {
			return "Nothing to review"
		}
		return "No findings"
	case review.OutcomeFindings:
		return findings
	case review.OutcomePartial:
		if len(r.Findings) == 0 {
			findings = "nothing found"
		}
		return "Partly reviewed, " + findings + " in the reviewed part"
	}
	return "Not reviewed"
}

// Count returns "1 file" or "3 files".
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.Itoa(n) + " " + noun + "s"
}
