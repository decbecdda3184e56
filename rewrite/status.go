package rewrite

import (
	"fmt"
	"slices"
)

// A Status is the status of a job (rewrite 3). It is wire format.
type Status string

// The canonical statuses.
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

// transitions are all legal changes of status. The constraint rewrite_transitions_legal
// of the schema holds the same list; a test compares the two.
var transitions = []struct{ from, to Status }{
	{Queued, Processing}, // claimed (rewrite 7.1)
	{Queued, Canceled},
	{Processing, Queued}, // overflow, retry, or a stale claim (rewrite 6.1, 8.1, 7.2)
	{Processing, BatchSubmitted},
	{Processing, Completed}, // by the async lane
	{Processing, Failed},
	{Processing, Canceled},
	{BatchSubmitted, Queued}, // retry (rewrite 8.1)
	{BatchSubmitted, Completed},
	{BatchSubmitted, Failed},
	{BatchSubmitted, Canceled},
}

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

// MayBecome reports whether a job may change from s to the given status.
func (s Status) MayBecome(to Status) bool {
	return slices.Contains(transitions, struct{ from, to Status }{s, to})
}

// Final reports whether no status follows.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Canceled }
