// Package activities holds the side effects of a review, one activity per file. Each
// struct serves one task queue and holds only what its stage may access, as small
// interfaces; the worker supplies the adapters. One [Interceptor] decides for all
// activities whether Temporal retries an error, and after which delay.
//
// A review runs [Bookkeeper.OpenJob], [Fetcher.Fetch], [Redactor.Redact],
// [Model.LLM], [Notifier.Notify] and [Bookkeeper.FinishJob]: read them in
// this order. recipients.go decides who is notified, deliver.go holds the sequence that sends each
// notification once, and adopt.go takes over the report of a shelf. reconcile.go, retention.go,
// catchup.go and notice.go run on schedules.
//
// Temporal's history stores the input and output of an activity for weeks: they are
// references, outcomes and counts, never content.
package activities

import (
	"time"

	"github.com/criticizer/criticizer/review"
)

// Spent is what an activity used of the stage's attempt budget, for the next activity of
// the stage.
type Spent struct {
	Failures int `json:"failures"` // failed attempts
	// FirstFailureAt is zero if the first attempt succeeded.
	FirstFailureAt time.Time `json:"first_failure_at,omitzero"`
}

// Add adds what another activity used.
func (s *Spent) Add(other Spent) {
	if other.Failures > 0 && (s.FirstFailureAt.IsZero() || other.FirstFailureAt.Before(s.FirstFailureAt)) {
		s.FirstFailureAt = other.FirstFailureAt
	}
	s.Failures += other.Failures
}

// StageParams is the input of an activity of a review, or a part of it.
type StageParams struct {
	Request review.Request `json:"request"`
	// Input is what the activity before this one stored; empty for the first.
	Input review.ArtifactRef `json:"input,omitempty"`
}

// request makes an input name its review to the log; see logAttempt.
func (p StageParams) request() review.Request { return p.Request }
