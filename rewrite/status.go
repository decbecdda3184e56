package rewrite

import (
	"fmt"
	"slices"
)

// A Status is the status of a job (rewrite 3). It is wire format.
type Status string

// The canonical statuses. The constraint rewrite_transitions_legal of the schema holds the
// legal changes of status; docs/states.md draws them.
const (
	Queued         Status = "queued"          // eligible once not_before_at has passed
	Processing     Status = "processing"      // claimed: executed or submitted now
	BatchSubmitted Status = "batch_submitted" // in a batch at the provider
	Completed      Status = "completed"       // the result is stored
	Failed         Status = "failed"          // permanently
	Canceled       Status = "canceled"        // by an operator
)

// aliases are other names that the contract allows as input (rewrite 3).
var aliases = map[string]Status{"running": Processing, "succeeded": Completed}

// Statuses returns the statuses in the order in which a job has them.
func Statuses() []Status {
	return []Status{Queued, Processing, BatchSubmitted, Completed, Failed, Canceled}
}

// ParseStatus parses a status or one of the aliases running and succeeded.
func ParseStatus(s string) (Status, error) {
	if canonical, ok := aliases[s]; ok {
		return canonical, nil
	}
	if slices.Contains(Statuses(), Status(s)) {
		return Status(s), nil
	}
	return "", fmt.Errorf("unknown status %q: want one of %v", s, Statuses())
}

// Final reports whether no status follows.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Canceled }
