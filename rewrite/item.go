package rewrite

import (
	"time"

	"github.com/criticizer/criticizer/redaction"
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
