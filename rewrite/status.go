package rewrite

import (
	"fmt"
	"slices"
)

// A Status is where a job is in its life (queue 3). The words are wire format.
type Status string

// The canonical statuses.
const (
	Queued         Status = "queued"          // waits to be claimed, once not_before_at has passed
	Processing     Status = "processing"      // claimed, and being executed or put into a batch
	BatchSubmitted Status = "batch_submitted" // in a batch at the provider
	Completed      Status = "completed"       // rewritten, and the result is stored
	Failed         Status = "failed"          // for good: no more attempts
	Canceled       Status = "canceled"        // by an administrator or the system
)

// aliases are the words of systems that were there before (queue 3).
var aliases = map[string]Status{"running": Processing, "succeeded": Completed}

// transitions are all legal changes of status. The migration that makes the table of jobs
// holds the same list; a test compares the two.
var transitions = []struct{ from, to Status }{
	{Queued, Processing}, // claimed (queue 7.1)
	{Queued, Canceled},
	{Processing, Queued}, // overflow, retry, or a stale claim (queue 6.1, 8.1, 7.2)
	{Processing, BatchSubmitted},
	{Processing, Completed}, // executed singly
	{Processing, Failed},
	{Processing, Canceled},
	{BatchSubmitted, Queued}, // retry (queue 8.1)
	{BatchSubmitted, Completed},
	{BatchSubmitted, Failed},
	{BatchSubmitted, Canceled},
}

// Statuses returns the canonical statuses in the order of a job's life.
func Statuses() []Status {
	return []Status{Queued, Processing, BatchSubmitted, Completed, Failed, Canceled}
}

// ParseStatus reads a canonical status or one of its aliases, running and
// succeeded.
func ParseStatus(s string) (Status, error) {
	if canonical, ok := aliases[s]; ok {
		return canonical, nil
	}
	if slices.Contains(Statuses(), Status(s)) {
		return Status(s), nil
	}
	return "", fmt.Errorf("there is no status %q: want one of %v", s, Statuses())
}

// MayBecome reports whether a job may go from s to the given status.
func (s Status) MayBecome(to Status) bool {
	return slices.Contains(transitions, struct{ from, to Status }{s, to})
}

// Final reports whether no status follows.
func (s Status) Final() bool { return s == Completed || s == Failed || s == Canceled }
