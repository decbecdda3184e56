package rewrite

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/criticizer/criticizer/redaction"
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

// An Item is the input of a model for one job. Its texts are redacted and may contain
// placeholders such as [REDACTED:email:1a2b], which the answer must repeat unchanged.
type Item struct {
	JobID     string
	Strength  Strength
	Languages LanguagePair
	Text      redaction.Text
	// Preferences are the recipient's preferences at the time of the snapshot, by name.
	Preferences map[string]redaction.Text
}

// A Line is a batch's result of one item: an answer, which is untrusted, or an error with a class.
type Line struct {
	JobID  string
	Answer string
	Err    error
}

// A BatchStatus is the status of a batch at its provider.
type BatchStatus string

// The statuses of a batch. The first two are not final.
const (
	BatchValidating BatchStatus = "validating"
	BatchInProgress BatchStatus = "in_progress" // or finalizing or cancelling
	BatchCompleted  BatchStatus = "completed"
	BatchFailed     BatchStatus = "failed"    // rejected as a whole
	BatchExpired    BatchStatus = "expired"   // may have results of some items
	BatchCancelled  BatchStatus = "cancelled" // may have results of some items
)

// Final reports whether no status follows.
func (s BatchStatus) Final() bool { return s != BatchValidating && s != BatchInProgress }

// A ProviderBatch is a batch as its provider describes it.
type ProviderBatch struct {
	ID string
	// Key and Installation are the submission key and our name in its metadata.
	Key, Installation string
	Status            BatchStatus
	CreatedAt         time.Time
	InputFileID       string
	// OutputFileID and ErrorFileID are the files with the lines of answered and of failed
	// items. Each may be empty in any status.
	OutputFileID, ErrorFileID string
	// Lines is how many items were answered or failed, by the provider's count.
	Lines int
	// Why the batch was rejected as a whole: the provider has no room now, it refuses the model or
	// the account, or lines of the input file, from 1, are faulty.
	Full, Refused bool
	FaultyLines   []int
}
