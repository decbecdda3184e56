package failure

import "time"

// A PageReason states why a dead letter pages the person on call. It is wire format.
type PageReason string

// The reasons.
const (
	PageEscalated PageReason = "escalated" // a replay failed again for the same reason (processing 8.5)
	PageBug       PageReason = "bug"       // a bug or an invalid configuration
	PageDenied    PageReason = "denied"    // refused credentials or exhausted credit; one page for all reviews
)

// A Page notifies the person on call about one dead letter. It contains nothing of
// the change and no address. Its JSON is what a webhook receives: the field names are
// wire format.
type Page struct {
	// ID is the same in every attempt to deliver the page.
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
