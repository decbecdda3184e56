package rewrite

import (
	"errors"
	"strconv"
	"strings"
)

// BatchKey returns what all jobs of one batch have in common (rewrite 9), which names the batch in
// logs. Adapter and URL are part of it: a batch is sent to one endpoint in one wire format. The lane
// follows from the languages. No part has blanks.
func (j Job) BatchKey() string {
	d := j.Routing
	return strings.Join([]string{
		d.ModelKey(), d.BaseURL, d.PromptVersion, d.PolicyVersion, j.Languages.From, j.Languages.To, j.BatchPart,
	}, " ")
}

// Half names a half, 1 or 2, of the jobs of a part; a part without a name is all of batch id.
func Half(part, id string, half int) string {
	if part == "" {
		part = id + "/"
	}
	return part + strconv.Itoa(half)
}

// ErrNoRoom is in the error of a batch that the provider refuses because of what is enqueued.
var ErrNoRoom = errors.New("the provider has no room for the batch")

// BatchLimits bound the batches of one model. A provider that refuses the size of a batch teaches
// lower ones.
type BatchLimits struct {
	Requests int // of one batch
	Tokens   int // of all batches at the provider
}

// Fit returns how many items, given by their tokens, the next batch may have. The others wait if it
// is 0: with what is enqueued, the first exceeds the limit (rewrite 6.1). An item that alone exceeds
// the limit gets a batch of its own: only the provider knows whether the item is too large.
func (l BatchLimits) Fit(tokens []int, enqueued int) (n int) {
	room := l.Tokens - enqueued
	for n < min(len(tokens), l.Requests) && (tokens[n] <= room || n == 0 && enqueued == 0) {
		room -= tokens[n]
		n++
	}
	return n
}

// A SubmissionState is the state of a submission.
type SubmissionState string

// The states of a submission.
const (
	Submitting SubmissionState = "submitting" // the key is recorded; the provider may have the batch
	Submitted  SubmissionState = "submitted"  // the provider's id is known
	Collected  SubmissionState = "collected"  // every job is decided
	Abandoned  SubmissionState = "abandoned"  // the provider does not have the batch, or it was given up
)
