package rewrite

import (
	"time"

	"github.com/criticizer/criticizer/redaction"
)

// An Item is one job as it is put to a model. Its texts have passed redaction,
// so they may hold placeholders such as [REDACTED:email:1a2b]; the answer is to
// repeat those it needs as they are.
type Item struct {
	JobID         string
	Surface       Surface
	Strength      Strength
	Languages     LanguagePair
	Model         string
	PromptVersion string
	Text          redaction.Text
	// Preferences are the recipient's, by name, as their snapshot has them.
	Preferences map[string]redaction.Text
}

// CustomID is what the item is called in a batch, and what its line in the
// batch's output is found by.
func (i Item) CustomID() string { return i.JobID }

// An Answer is what a model made of an item. Its text is untrusted and, like
// every text, never logged.
type Answer struct {
	Text  string
	Usage Usage
}

// Usage is what an answer cost, in the provider's tokens.
type Usage struct {
	InputTokens  int `json:"input_tokens"`
	OutputTokens int `json:"output_tokens"`
}

// A Line is what a batch's output says of one item. Either Answer or Err is
// set; the class of Err decides whether the job is tried again.
type Line struct {
	CustomID string
	Answer   Answer
	Err      error
}

// A BatchStatus is where a batch is at its provider.
type BatchStatus string

// The statuses of a batch. Only the first three are not final.
const (
	BatchValidating BatchStatus = "validating"
	BatchInProgress BatchStatus = "in_progress" // finalizing and cancelling, too
	BatchCompleted  BatchStatus = "completed"
	BatchFailed     BatchStatus = "failed"    // refused as a whole: see Problems
	BatchExpired    BatchStatus = "expired"   // may have results of some items
	BatchCancelled  BatchStatus = "cancelled" // may have results of some items
)

// Final reports whether the batch will not change any more.
func (s BatchStatus) Final() bool { return s != BatchValidating && s != BatchInProgress }

// A ProviderBatch is a batch as its provider describes it.
type ProviderBatch struct {
	ID        string
	Status    BatchStatus
	CreatedAt time.Time
	// OutputFileID and ErrorFileID name the files with the lines of items that
	// were answered and of those that were not. Each may be empty in any status.
	OutputFileID, ErrorFileID string
	// Problems say why the batch was refused as a whole.
	Problems []BatchProblem
}

// A BatchProblem is one reason for which a batch was refused.
type BatchProblem struct {
	Code string // the provider's word, such as invalid_json_line or token_limit_exceeded
	Line int    // of the input file, from 1; 0 if it is about the whole
	// Capacity says that the provider has no room now: that is no fault of the
	// items, which are tried again without counting it as an attempt.
	Capacity bool
}

// A Weight is what an item takes up in a batch.
type Weight struct {
	Bytes  int // of its line in the input file, line end included
	Tokens int // of its prompt, estimated
}
