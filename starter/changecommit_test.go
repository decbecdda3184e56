package main

import (
	"testing"

	"github.com/criticizer/criticizer/review"
)

// The line that people read names the outcome, and does not look like an approval if no
// model read the change.
func TestLineOfAReview(t *testing.T) {
	t.Parallel()
	clean := answer{Changelist: 103, Version: 1, State: review.JobSucceeded, Outcome: review.OutcomeClean}
	simulated := clean
	simulated.StandIn = true
	for want, a := range map[string]answer{
		"review of changelist 103 version 1 ended: clean, 0 findings":                    clean,
		"review of changelist 103 version 1 ended: clean (no model read it), 0 findings": simulated,
	} {
		if got := a.line(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
