package rewrite

import (
	"time"

	"github.com/google/uuid"
)

// A Claim is the right of one attempt of one run to execute the jobs that it has
// claimed. Its token guards every write of the attempt.
type Claim struct {
	RunID  string
	Worker string // such as a process and its host
	Token  string
}

// NewClaim returns a claim that holds no jobs yet.
func NewClaim(runID, worker string) Claim { return Claim{runID, worker, uuid.NewString()} }

// A Holder is the right to write results: of a claim, or of a batch at the provider. A
// write to a job that the holder has lost changes nothing.
type Holder struct {
	RunID      string
	ClaimToken string // empty for a batch
	BatchID    string // empty for a claim
}

// Holder returns the right to write the results of claimed jobs.
func (c Claim) Holder() Holder { return Holder{RunID: c.RunID, ClaimToken: c.Token} }

// A Verdict queues or fails a job that was not completed.
type Verdict struct {
	JobID    string
	Status   Status
	Attempts int           // the job's new attempt_count
	Wait     time.Duration // before it is eligible again
	Error    string        // its last_error
	Part     string        // its new BatchPart; empty: unchanged
}
