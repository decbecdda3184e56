// Package activities holds the side effects of a review, one activity per
// file. Each struct serves one task queue and holds only what its stage may
// touch; the interfaces beside them say what that is, and worker plugs the
// adapters in. One [Interceptor] turns errors into verdicts for Temporal.
//
// A review goes through [Bookkeeping.OpenJob], [Fetching.Fetch],
// [Redacting.Redact], [Critiquing.Critique], [Notifying.Notify] and
// [Bookkeeping.FinishJob], which are best read in this order. The send-and-mark
// sequence that tells everybody once is in deliver.go.
//
// What goes in and out of an activity is recorded in Temporal's history for
// weeks: references, verdicts and counts, never content.
package activities

import (
	"time"

	"github.com/criticizer/criticizer/review"
)

// The task queues. They are wire format: a worker serves a queue by its name,
// and operators pause and rate-limit by it.
const (
	QueueBookkeeping = "criticizer"
	QueueFetch       = "criticizer-fetch"
	QueueRedact      = "criticizer-redact"
	QueueLLM         = "criticizer-llm"
	QueueNotify      = "criticizer-notify"
)

// Spent is what an activity used of its stage's attempt budget, for the
// activity that shares the stage (criticizer-processing 8.3).
type Spent struct {
	Failures int `json:"failures"` // failed attempts; the one that succeeded is free
	// FirstFailureAt is zero if the first attempt succeeded.
	FirstFailureAt time.Time `json:"first_failure_at,omitzero"`
}

// StageParams is the input of a stage's activity.
type StageParams struct {
	Request review.Request `json:"request"`
	// Input is what the activity before this one stored; empty for the first.
	Input review.ArtifactRef `json:"input,omitempty"`
	// ChannelsApart has [Notifying.Notify] name the channels and not tell them,
	// for the workflow does. Those begun by earlier builds do not.
	ChannelsApart bool `json:"channels_apart,omitempty"`
}
