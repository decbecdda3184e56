package rewrite

import (
	"time"

	"github.com/criticizer/criticizer/redaction"
)

// An Item is the input of a model for one job. Its texts are redacted and may contain
// placeholders such as [REDACTED:email:1a2b], which the answer must repeat unchanged.
type Item struct {
	JobID         string
	Surface       Surface
	Strength      Strength
	Languages     LanguagePair
	Model         string
	PromptVersion string
	Text          redaction.Text
	// Preferences are the recipient's preferences at the time of the snapshot, by name.
	Preferences map[string]redaction.Text
}

// An Answer is a model's answer to an item. Its text is untrusted and never logged.
type Answer struct {
	Text  string
	Usage Usage
}

// Usage is the cost of an answer in the provider's tokens.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// A Line is a batch's result of one item: an answer or an error with a class.
type Line struct {
	JobID  string
	Answer Answer
	Err    error
}

// A BatchStatus is the status of a batch at its provider.
type BatchStatus string

// The statuses of a batch. The first two are not final.
const (
	BatchValidating BatchStatus = "validating"
	BatchInProgress BatchStatus = "in_progress" // or finalizing or cancelling
	BatchCompleted  BatchStatus = "completed"
	BatchFailed     BatchStatus = "failed"    // rejected as a whole: see Problems
	BatchExpired    BatchStatus = "expired"   // may have results of some items
	BatchCancelled  BatchStatus = "cancelled" // may have results of some items
)

// Final reports whether no status follows.
func (s BatchStatus) Final() bool { return s != BatchValidating && s != BatchInProgress }

// A ProviderBatch is a batch as its provider describes it.
type ProviderBatch struct {
	ID        string
	Key       string // the submission key in its metadata
	Status    BatchStatus
	CreatedAt time.Time
	// OutputFileID and ErrorFileID are the files with the lines of answered and of failed
	// items. Each may be empty in any status.
	OutputFileID, ErrorFileID string
	// Lines is how many items were answered or failed, by the provider's count.
	Lines int
	// Problems are the reasons for which the batch was rejected as a whole.
	Problems []BatchProblem
}

// A BatchProblem is one reason for which a batch was rejected.
type BatchProblem struct {
	Code     string // the provider's, such as invalid_json_line or token_limit_exceeded
	Line     int    // of the input file, from 1; 0 if no line has the problem
	Capacity bool   // the provider has no room now
	Endpoint bool   // the provider refuses the model or the account
}
