package rewrite

import (
	"fmt"
	"time"
)

// A Lane separates rewrites within one language from those that translate, too.
type Lane string

// The lanes.
const (
	SameLanguage  Lane = "same_language"
	CrossLanguage Lane = "cross_language"
)

// Lane is the lane of a language pair.
func (p LanguagePair) Lane() Lane {
	if p.From == p.To {
		return SameLanguage
	}
	return CrossLanguage
}

// A BatchKey is what all jobs of one batch have in common (queue 9). Adapter and
// URL are part of it, for a batch is sent to one place in one protocol.
type BatchKey struct {
	Provider      string
	AdapterKind   AdapterKind
	BaseURL       string
	Model         string
	PromptVersion string
	PolicyVersion string
	Lane          Lane
	Languages     LanguagePair
}

// BatchKey is the key of the batches that a job may be part of.
func (j Job) BatchKey() BatchKey {
	d := j.Routing
	return BatchKey{
		d.Provider, d.AdapterKind, d.BaseURL, d.Model, d.PromptVersion, d.PolicyVersion, j.Languages.Lane(), j.Languages,
	}
}

// String names the group in logs and listings.
func (k BatchKey) String() string {
	return fmt.Sprintf("%s/%s prompt %s policy %s %s %s>%s",
		k.Provider, k.Model, k.PromptVersion, k.PolicyVersion, k.Lane, k.Languages.From, k.Languages.To)
}

// BatchLimits bound one batch. They are the provider's; ours may be lower.
type BatchLimits struct {
	Requests int
	Bytes    int
	Tokens   int // of all batches of a model that are at the provider at a time
}

// ProviderLimits are what OpenAI accepts in one file. How many tokens may be
// enqueued depends on the account.
var ProviderLimits = BatchLimits{Requests: 50_000, Bytes: 200_000_000, Tokens: 2_000_000}

// Split cuts a row of items, of which it is given the weights, into batches
// within the limits: each is a range of the row. What is not in any range is
// overflow: there is no room for its tokens beside those that are enqueued at
// the provider (queue 6.1). An item that alone is above a limit is in a batch of
// its own, for only the provider can tell whether it is too large.
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

// A SubmissionState is where one batch of ours is.
type SubmissionState string

// The states of a submission.
const (
	// Submitting: the submission key is written; whether the provider has the
	// batch, only the provider knows.
	Submitting SubmissionState = "submitting"
	Submitted  SubmissionState = "submitted" // the provider's id is known
	Collected  SubmissionState = "collected" // every job of it has been decided
	Abandoned  SubmissionState = "abandoned" // the provider never had it, or has lost it
)

// A Submission is one batch as we know it.
type Submission struct {
	// ID is the submission key: what the batch is found by at the provider.
	ID          string          `json:"batch_id"`
	State       SubmissionState `json:"state"`
	Routing     RoutingDecision `json:"routing_decision"`
	Languages   LanguagePair    `json:"language_pair"`
	Requests    int             `json:"requests"`
	Tokens      int             `json:"tokens"`
	CreatedAt   time.Time       `json:"created_at"`
	InputFileID string          `json:"input_file_id,omitempty"`
	// CreateError is how the creation ended, if it is not known whether it made
	// a batch: a class of package failure.
	CreateError string `json:"create_error,omitempty"`
	// CreateBegunAt is since when the provider may have the batch.
	CreateBegunAt  *time.Time  `json:"create_begun_at"`
	ProviderID     string      `json:"provider_batch_id"`
	ProviderStatus BatchStatus `json:"provider_status"`
	SubmittedAt    *time.Time  `json:"submitted_at"`
	CancelAskedAt  *time.Time  `json:"cancel_asked_at"`
	// Age is for how long it has been at the provider, by the database's clock.
	Age time.Duration `json:"-"`
}
