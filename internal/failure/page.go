package failure

import "time"

// A PageReason says why a person is called about a dead letter at once. It is
// wire format.
type PageReason string

// The reasons.
const (
	PageEscalated PageReason = "escalated" // replayed, and it failed again for the same reason (criticizer-processing 8.5)
	PageBug       PageReason = "bug"       // a bug or a bad configuration (criticizer-processing 8.1)
	PageDenied    PageReason = "denied"    // a credential is refused or the credit used up; told once, not of each review that meets it
)

// A Page is what the person on call is told about one dead letter: what, where
// and what to do; nothing of the change, and no address. Its field names are
// wire format: it is what a webhook receives.
type Page struct {
	// ID is the same for every attempt to deliver the page.
	ID            int64      `json:"page_id"`
	Reason        PageReason `json:"reason"`
	Changelist    int64      `json:"changelist"`
	ReviewVersion int        `json:"review_version"`
	Stage         string     `json:"stage"`
	ErrorClass    Class      `json:"error_class"`
	Hint          string     `json:"hint"`
	LastFailureAt time.Time  `json:"last_failure_at"`
	DeadLetterID  int64      `json:"dead_letter_id"`
	WorkflowID    string     `json:"workflow_id"`
	RunID         string     `json:"run_id"`
}
