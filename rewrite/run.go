package rewrite

import "time"

// A Worker is one of the scheduled functions of the queue. It is wire format: the name of
// a schedule and of a workflow, and part of the runs' records.
type Worker string

// The workers (rewrite 5).
const (
	Submitter Worker = "rewrite_batch_submitter"
	Collector Worker = "rewrite_batch_collector"
	AsyncLane Worker = "rewrite_async"
)

// Workers returns all workers.
func Workers() []Worker { return []Worker{Submitter, Collector, AsyncLane} }

// Skip returns the event of a run without pending items (rewrite 5, 10).
func (w Worker) Skip() string { return string(w) + " skipped: no pending items" }

// A Run is the record of one run of a worker: ids and counts, no text (rewrite 10).
type Run struct {
	ID         string     `json:"run_id"`
	Worker     Worker     `json:"worker"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"` // nil while it runs
	// Event is the skip event; empty for a run with pending items.
	Event         string `json:"event,omitempty"`
	MaxJobsPerRun int    `json:"max_jobs_per_run"`
	Counts
	// Stale counts the claims of lost workers that the run has ended (rewrite 7.2).
	Stale int `json:"stale_count"`
	// Refusals are the providers that refused a call before the run claimed jobs.
	Refusals []Refusal `json:"refusals"`
	// PerModel has the counts of each provider and model.
	PerModel []ModelCounts `json:"per_model"`
}

// A Refusal says that none of a provider's jobs was claimed, and why: a class of package failure.
type Refusal struct {
	Provider string `json:"provider"`
	Class    string `json:"class"`
}

// Counts count transitions of jobs. They are computed from the database's record of
// transitions, so that they are correct after a crash.
type Counts struct {
	Claimed   int `json:"claimed_count"`
	Submitted int `json:"submitted_count"`
	Succeeded int `json:"succeeded_count"`
	Failed    int `json:"failed_count"`
	Requeued  int `json:"requeued_count"`
	// RateLimited counts refusals for the rate, Capacity those for what names no job: the key, the
	// account, the model, a quota or what is enqueued.
	RateLimited int `json:"rate_limit_errors"`
	Capacity    int `json:"capacity_errors"`
}

// ModelCounts are the counts of one model.
type ModelCounts struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Counts
}
