package rewrite

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// A Lane separates rewrites within one language from those that also translate.
type Lane string

// The lanes.
const (
	SameLanguage  Lane = "same_language"
	CrossLanguage Lane = "cross_language"
)

// Lane returns the lane of a language pair.
func (p LanguagePair) Lane() Lane {
	if p.From == p.To {
		return SameLanguage
	}
	return CrossLanguage
}

// A BatchKey is what all jobs of one batch have in common (rewrite 9). Adapter and URL
// are part of it: a batch is sent to one endpoint in one wire format.
type BatchKey struct {
	Provider      string
	AdapterKind   AdapterKind
	BaseURL       string
	Model         string
	PromptVersion string
	PolicyVersion string
	Lane          Lane
	Languages     LanguagePair
	Part          string // of a rejected batch; see [Job]
}

// BatchKey returns the key of the batches that the job may join.
func (j Job) BatchKey() BatchKey {
	d := j.Routing
	return BatchKey{
		d.Provider, d.AdapterKind, d.BaseURL, d.Model, d.PromptVersion, d.PolicyVersion, j.Languages.Lane(), j.Languages, j.BatchPart,
	}
}

// String names the group in logs and listings.
func (k BatchKey) String() string {
	return fmt.Sprintf("%s/%s prompt %s policy %s %s %s>%s",
		k.Provider, k.Model, k.PromptVersion, k.PolicyVersion, k.Lane, k.Languages.From, k.Languages.To)
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

// BatchLimits bound one batch.
type BatchLimits struct {
	Requests int
	Bytes    int
	Tokens   int // of all batches of a model at the provider
}

// Split splits items, given by their weights, into batches within the limits. Each batch
// is a range of items. The last overflow items are in no batch: their tokens and those
// that are enqueued exceed the limit (rewrite 6.1). An item that alone exceeds a limit
// gets a batch of its own: only the provider knows whether the item is too large.
func (l BatchLimits) Split(weights []Weight, enqueuedTokens int) (batches [][2]int, overflow int) {
	var sum Weight
	begin := 0
	room := max(0, l.Tokens-enqueuedTokens)
	for i, w := range weights {
		first := i == 0 && enqueuedTokens == 0
		if w.Tokens > room && !first {
			overflow = len(weights) - i
			weights = weights[:i]
			break
		}
		room -= w.Tokens
		if i > begin && (i-begin == l.Requests || sum.Bytes+w.Bytes > l.Bytes) {
			batches = append(batches, [2]int{begin, i})
			begin, sum = i, Weight{}
		}
		sum.Bytes += w.Bytes
	}
	if len(weights) > begin {
		batches = append(batches, [2]int{begin, len(weights)})
	}
	return batches, overflow
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

// A Submission is the record of one batch.
type Submission struct {
	// ID is the submission key, which identifies the batch at the provider.
	ID          string          `json:"batch_id"`
	State       SubmissionState `json:"state"`
	Routing     RoutingDecision `json:"routing_decision"`
	Languages   LanguagePair    `json:"language_pair"`
	Requests    int             `json:"requests"`
	Tokens      int             `json:"tokens"`
	CreatedAt   time.Time       `json:"created_at"`
	InputFileID string          `json:"input_file_id,omitempty"`
	// CreateError is the error class of a creation that may have created the batch.
	CreateError string `json:"create_error,omitempty"`
	// CreateBegunAt is when the creation began.
	CreateBegunAt  *time.Time  `json:"create_begun_at"`
	ProviderID     string      `json:"provider_batch_id"`
	ProviderStatus BatchStatus `json:"provider_status"`
	SubmittedAt    *time.Time  `json:"submitted_at"`
	PolledAt       *time.Time  `json:"polled_at"`
	CancelAskedAt  *time.Time  `json:"cancel_asked_at"`
	// FinalAt is when the provider was first seen to have ended the batch.
	FinalAt *time.Time `json:"final_at"`
	// Age is the time since the submission, by the database's clock.
	Age time.Duration `json:"-"`
	// FinalAge is the time since FinalAt.
	FinalAge time.Duration `json:"-"`
}
