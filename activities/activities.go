// Package activities holds the side effects of a review, one activity per file. Each
// struct serves one task queue and holds only what its stage may access, as small
// interfaces; the worker supplies the adapters. One [Interceptor] decides for all
// activities whether Temporal retries an error, and after which delay.
//
// A review runs [Bookkeeper.OpenJob], [Fetcher.Fetch], [Redactor.Redact],
// [Model.LLM], [Notifier.Notify] and [Bookkeeper.FinishJob]: read them in
// this order. deliver.go holds the sequence that sends each notification once.
//
// Temporal's history stores the input and output of an activity for weeks: they are
// references, verdicts and counts, never content.
package activities

import (
	"time"

	"github.com/criticizer/criticizer/review"
)

// The task queues. They are wire format: workers serve a queue by its name, and
// operators pause and rate-limit it.
const (
	QueueBookkeeping = "criticizer"
	QueueFetch       = "criticizer-fetch"
	QueueRedact      = "criticizer-redact"
	QueueLLM         = "criticizer-llm"
	QueueNotify      = "criticizer-notify"
	QueueRecords     = "criticizer-records" // of stage notify, without the mail server
	QueueRetention   = "criticizer-retention"
)

// StageQueues are the task queues of the stages of a worker, by the name of the stage.
var StageQueues = map[string]string{
	"workflows": QueueBookkeeping, "fetch": QueueFetch, "redact": QueueRedact, "llm": QueueLLM, "notify": QueueNotify, "retention": QueueRetention,
}

// ChannelQueue is the task queue of one channel. With a queue of its own, a channel that
// is down has its own circuit breaker and retries, and delays no mail.
func ChannelQueue(c review.Channel) string { return QueueBookkeeping + "-" + string(c) }

// BreakerQueues lists the task queues that have a circuit breaker, which belongs to a process
// (internal/breaker).
func BreakerQueues() []string {
	return []string{QueueFetch, QueueRedact, QueueLLM, QueueNotify, ChannelQueue(review.ChannelWebhook), ChannelQueue(review.ChannelSwarm)}
}

// WatchedQueues lists the task queues whose backlog is shown: the queue in which reviews
// begin, and [BreakerQueues].
func WatchedQueues() []string { return append([]string{QueueBookkeeping}, BreakerQueues()...) }

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

// StageParams is the input of a stage's activity.
type StageParams struct {
	Request review.Request `json:"request"`
	// Input is what the activity before this one stored; empty for the first.
	Input review.ArtifactRef `json:"input,omitempty"`
}

// request makes an input name its review to the log; see logAttempt.
func (p StageParams) request() review.Request { return p.Request }
