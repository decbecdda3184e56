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
