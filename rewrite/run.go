package rewrite

import "time"

// A Worker is one of the scheduled functions of the queue. Its name is wire
// format: of a schedule, of a workflow and in the runs' records.
type Worker string

// The workers (queue 5).
const (
	Submitter Worker = "rewrite_batch_submitter"
	Collector Worker = "rewrite_batch_collector"
	AsyncLane Worker = "rewrite_async"
)

// Workers returns all workers.
func Workers() []Worker { return []Worker{Submitter, Collector, AsyncLane} }

// Skip is the event of a run that found nothing to do (queue 5, 10).
func (w Worker) Skip() string { return string(w) + " skipped: no pending items" }

// A Run is the record of one run of a worker (queue 10). It holds ids and
// counts, and no text.
type Run struct {
	ID         string     `json:"run_id"`
	Worker     Worker     `json:"worker"`
	StartedAt  time.Time  `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"` // nil while it goes on
	// Event is the skip event; empty for a run that had something to do.
	Event         string `json:"event,omitempty"`
	MaxJobsPerRun int    `json:"max_jobs_per_run"`
	Counts
	// Stale counts claims of lost workers that the run has ended (queue 7.2).
	Stale int `json:"stale_count"`
	// PerModel has the counts of each provider and model.
	PerModel []ModelCounts `json:"per_model"`
}

// Counts are what became of jobs. They are counted from the database's own
// record of every transition, so that they are right after a crash, too.
type Counts struct {
	Claimed   int `json:"claimed_count"`
	Submitted int `json:"submitted_count"`
	Succeeded int `json:"succeeded_count"`
	Failed    int `json:"failed_count"`
	Requeued  int `json:"requeued_count"`
	// RateLimited and Capacity are how many of the failures were the provider's
	// limits on rate, and on quota or enqueued work.
	RateLimited int `json:"rate_limit_errors"`
	Capacity    int `json:"capacity_errors"`
}

// ModelCounts are the counts of one model.
type ModelCounts struct {
	Provider string `json:"provider"`
	Model    string `json:"model"`
	Counts
}
