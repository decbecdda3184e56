package failure

import (
	"errors"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A DeadLetter is everything an operator needs to know about a stage that
// failed for good (criticizer-processing 8.4). The same payload is stored in
// Postgres and carried by the workflow's failure. Its field names are wire
// format.
type DeadLetter struct {
	ErrorClass Class  `json:"error_class"`
	Stage      string `json:"stage"`
	// LastStack is the error chain of the last attempt, outermost first.
	LastStack string `json:"last_stack"`
	// SanitizedContext holds request ids, codes and counts; never secrets,
	// prompts or personal data.
	SanitizedContext map[string]string `json:"sanitized_context"`
	FirstFailureAt   time.Time         `json:"first_failure_at"`
	LastFailureAt    time.Time         `json:"last_failure_at"`
	Attempts         int               `json:"attempts"`
	Hint             string            `json:"hint"`
}

// Report is what one failed attempt tells about itself. It travels in the
// details of the activity's error, so its field names are wire format.
type Report struct {
	Class     Class     `json:"error_class"`
	Stack     string    `json:"stack"`
	Upstream  string    `json:"upstream,omitempty"`
	RequestID string    `json:"request_id,omitempty"`
	Attempt   int       `json:"attempt"`
	At        time.Time `json:"at"`
	// FirstAt is when the activity's first attempt failed, as far as is known.
	FirstAt time.Time `json:"first_at"`
}

// NewReport describes err, which ended the given attempt. The chain is passed
// through scrub, for it may quote what the outside said.
func NewReport(err error, attempt int, at time.Time, scrub func(string) string) Report {
	r := Report{Class: ClassOf(err), Stack: truncate(scrub(err.Error()), maxStack), Attempt: attempt, At: at, FirstAt: at}
	if e, ok := errors.AsType[*Error](err); ok {
		r.Upstream, r.RequestID = truncate(scrub(e.Upstream), maxField), truncate(scrub(e.RequestID), maxField)
	}
	return r
}

// Message is one line of the report, for Temporal's list of failures.
func (r Report) Message() string {
	line, _, _ := strings.Cut(r.Stack, "\n")
	return truncate(line, maxMessage)
}

// Limits of what goes into a workflow's history: far below Temporal's own, so
// that a failure can always be recorded (a 3 MB detail hangs a workflow).
const (
	maxStack   = 16 << 10
	maxMessage = 1 << 10
	maxField   = 256
)

// truncate cuts s to at most n bytes at a rune border and says how much is gone.
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
