package rewrite

import (
	"time"

	"github.com/google/uuid"
)

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

// A Refusal says that none of a provider's jobs was claimed, and why: a class of package failure.
type Refusal struct {
	Provider string `json:"provider"`
	Class    string `json:"class"`
}

// ModelCounts count the transitions of one model's jobs in a run. The database computes them from its
// record of transitions, so that they are correct after a crash.
type ModelCounts struct {
	Provider  string `json:"provider"`
	Model     string `json:"model"`
	Claimed   int    `json:"claimed_count"`
	Submitted int    `json:"submitted_count"`
	Succeeded int    `json:"succeeded_count"`
	Failed    int    `json:"failed_count"`
	Requeued  int    `json:"requeued_count"`
	// RateLimited counts refusals for the rate, Capacity those for what names no job: the key, the
	// account, the model, a quota or what is enqueued.
	RateLimited int `json:"rate_limit_errors"`
	Capacity    int `json:"capacity_errors"`
}

// A Claim is the right of one attempt of one run to execute the jobs that it has
// claimed. Its token guards every write of the attempt.
type Claim struct {
	RunID  string
	Worker string // such as a process and its host
	Token  string
}

// NewClaim returns a claim that holds no jobs yet.
func NewClaim(runID, worker string) Claim { return Claim{runID, worker, uuid.NewString()} }

// An Outcome is how an attempt at a job ended: the job is completed, queued or failed. The database
// reads its JSON form.
type Outcome struct {
	JobID    string        `json:"job_id"`
	Status   Status        `json:"status"`
	Result   string        `json:"result"`   // reference of a completed job's result
	Attempts int           `json:"attempts"` // the job's new attempt_count
	Wait     time.Duration `json:"wait"`     // before it is eligible again
	Error    string        `json:"error"`    // its last_error
	Part     string        `json:"part"`     // its new BatchPart; empty: unchanged
	Rounds   int           `json:"rounds"`   // its new Rounds
}
