package rewrite

import (
	"time"

	"github.com/google/uuid"
)

// A Claim is the right of one attempt of one run to execute the jobs that it has
// claimed. Every write of it is guarded by its token.
type Claim struct {
	RunID  string
	Worker string // who works, such as a process and its host
	Token  string
}

// NewClaim returns a claim that holds no jobs yet.
func NewClaim(runID, worker string) Claim { return Claim{runID, worker, uuid.NewString()} }

// A Holder says by which right results are written: that of a claim, or that of
// a batch at the provider. What is not the holder's any more is not written.
type Holder struct {
	RunID      string
	ClaimToken string // empty for a batch
	BatchID    string // empty for a claim
}

// Holder is the right to write what became of claimed jobs.
func (c Claim) Holder() Holder { return Holder{RunID: c.RunID, ClaimToken: c.Token} }

// A Verdict is what becomes of a job that was not completed: it is queued again
// or failed.
type Verdict struct {
	JobID    string
	Status   Status
	Attempts int           // the job's new attempt_count
	Wait     time.Duration // before it may be claimed again
	Error    string        // its last_error
}
