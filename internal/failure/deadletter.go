package failure

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// EscalatedHint is what to do about a dead letter whose replay failed for the same reason
// (processing 8.5).
const EscalatedHint = "its replay failed for the same reason: pass it to engineering; after their fix, replay it with --escalated and --note"

// A DeadLetter describes a stage that failed for the last time (processing 8.4: class,
// stage, stack, sanitized context, times, attempts). It is stored in Postgres and is
// part of the workflow's failure: the field names are wire format.
type DeadLetter struct {
	ErrorClass Class  `json:"error_class"`
	Stage      string `json:"stage"`
	// LastStack is the error chain of the last attempt, outermost first.
	LastStack string `json:"last_stack"`
	// SanitizedContext holds request IDs, codes and counts; no secrets, prompts or
	// personal data.
	SanitizedContext map[string]string `json:"sanitized_context"`
	FirstFailureAt   time.Time         `json:"first_failure_at"`
	LastFailureAt    time.Time         `json:"last_failure_at"`
	Attempts         int               `json:"attempts"`
	Hint             string            `json:"hint"`
}

// A Report describes one failed attempt. It is the detail of the activity's error:
// the field names are wire format.
type Report struct {
	Class     Class  `json:"error_class"`
	Stack     string `json:"stack"`
	Upstream  string `json:"upstream,omitempty"`
	RequestID string `json:"request_id,omitempty"`
	Attempt   int    `json:"attempt"`
	// Stopped counts the attempts, this one included, that were ended from outside.
	Stopped int       `json:"stopped,omitempty"`
	At      time.Time `json:"at"`
	// FirstAt is when the first attempt of the activity failed, if that is known.
	FirstAt time.Time `json:"first_at"`
}

// Failures is the number of attempts that count against the stage's budget.
func (r Report) Failures() int { return r.Attempt - r.Stopped }

// NewReport describes err, which ended the given attempt. scrub redacts the texts,
// which may quote a server.
func NewReport(err error, attempt int, at time.Time, scrub func(string) string) Report {
	r := Report{Class: ClassOf(err), Stack: truncate(scrub(err.Error()), maxStack), Attempt: attempt, At: at, FirstAt: at}
	if e, ok := errors.AsType[*Error](err); ok {
		r.Upstream, r.RequestID = truncate(scrub(e.Upstream), maxField), truncate(scrub(e.RequestID), maxField)
	}
	return r
}

// Message returns the first line, for Temporal's list of failures.
func (r Report) Message() string {
	line, _, _ := strings.Cut(r.Stack, "\n")
	return truncate(line, maxMessage)
}

// Limits in bytes of texts in a workflow's history. They are far below Temporal's
// limits, so that a failure can always be recorded (details of 3 MB block a
// workflow).
const (
	maxStack   = 16 << 10
	maxMessage = 1 << 10
	maxField   = 256
)

// truncate cuts s at a rune boundary to at most n bytes, and appends how many bytes
// it cut.
func truncate(s string, n int) string {
	if len(s) <= n {
		return s
	}
	cut := n
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + " [" + strconv.Itoa(len(s)-cut) + " bytes cut]"
}

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
	// RunbookURL and TemporalURL are the page of the runbook and the run in Temporal's UI. The
	// sender of a page sets them; TemporalURL is empty if temporal.ui_url is.
	RunbookURL  string `json:"runbook_url"`
	TemporalURL string `json:"temporal_url,omitempty"`
	// Outage states that the circuit breaker of the stage is not closed, if so.
	Outage string `json:"outage,omitempty"`
}
