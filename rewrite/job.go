// Package rewrite holds the types and rules of the complaint_rewrite queue: jobs,
// routing decisions, runs and batches. It does no I/O. The queue shares Temporal,
// Postgres, redaction, the client of model endpoints (llm/endpoint), the encryption of texts
// (store/artifact) and the packages of internal with reviews, and nothing else.
//
// A backend enqueues an [Order] with its encrypted texts, which becomes a [Job]. A job without a
// [RoutingDecision] gets that of the configuration: provider, model and execution mode. Three
// workers run on schedules. In each run, a worker claims jobs, up to a limit:
//
//   - The async lane sends one request per job.
//   - The batch submitter groups jobs by [Job.BatchKey], uploads them and creates a batch at
//     the provider.
//   - The batch collector polls the batches and reads the results of those that ended.
//
// Every job is redacted before it is sent and its answer is checked. A failed attempt
// is queued again or fails the job, as [RunConfig.AfterFailure] decides. No provider is
// asked twice for one attempt: a [Claim] fences every write, the start of a request is
// recorded before it is sent, and a batch carries its submission key at the provider.
//
// Read [Status], [Job] and [RunConfig], then package rewrite/activities from ExecuteJobs
// on, then rewrite/store for the SQL, rewrite/provider for the wire formats and
// rewrite/workflows for the schedule.
package rewrite

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/text/language"
)

// Task is the only task of this queue.
const Task = "complaint_rewrite"

// DefaultMaxAttempts is the default number of attempts of a job (rewrite 4).
const DefaultMaxAttempts = 2

// MostAttempts bounds the attempts of a job: each one is billed.
const MostAttempts = 50

// A Surface is the part of the product in which the complaint was written.
type Surface string

// The surfaces.
const (
	WeeklyHarmony Surface = "weekly_harmony"
	DirectMessage Surface = "direct_message"
	OtherSurface  Surface = "other"
)

var surfaces = []Surface{WeeklyHarmony, DirectMessage, OtherSurface}

// A Strength is how much of the text may change. Each has its own prompt.
type Strength string

// The strengths.
const (
	LightTouch  Strength = "light_touch"
	FullReframe Strength = "full_reframe"
)

var strengths = []Strength{LightTouch, FullReframe}

// A LanguagePair is the languages of a rewrite as BCP-47 tags.
type LanguagePair struct {
	From string `json:"from"` // of the complaint
	To   string `json:"to"`   // of the recipient
}

// Same reports whether the rewrite is in the language of the complaint.
func (p LanguagePair) Same() bool { return p.From == p.To }

func (p LanguagePair) validate() error {
	for _, end := range []struct{ name, tag string }{{"from", p.From}, {"to", p.To}} {
		if _, err := language.Parse(end.tag); err != nil || end.tag == "und" {
			return fmt.Errorf("language_pair.%s is no BCP-47 tag: write one such as en or pt-BR", end.name)
		}
	}
	return nil
}

// A Job is one rewrite for one recipient (rewrite 4): the order, and what the queue has done with it.
// RequestID and RecipientUserID together are unique. All times are UTC and set by the database.
type Job struct {
	Order

	Status    Status     `json:"status"`
	CreatedAt time.Time  `json:"created_at"`
	UpdatedAt time.Time  `json:"updated_at"`
	ClaimedAt *time.Time `json:"claimed_at"`
	ClaimedBy *string    `json:"claimed_by"`

	AttemptCount int `json:"attempt_count"`
	// LastError is a class of package failure, one of the words below, unreadable_ with the
	// name of a field, or, if the worker was lost, stale_claim_requeued or
	// stale_claim_failed; never text of a provider.
	LastError   *string    `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`

	// Unreadable is the field of the row that could not be decoded; the job is not executed.
	Unreadable string `json:"unreadable,omitempty"`
	// BatchID is the job's last batch.
	BatchID *string `json:"batch_id,omitempty"`
	// BegunAt is when the request to the provider began under the present claim. If a
	// claim is taken over with BegunAt set, the job may have been executed.
	BegunAt *time.Time `json:"begun_at,omitempty"`
	// BatchPart is set when the provider rejected a batch without naming a line: only jobs
	// of the same part share the next batch, so that the job at fault is found.
	BatchPart string `json:"batch_part,omitempty"`
	// Rounds counts the refusals in a row that were not the job's and counted no attempt.
	Rounds int `json:"capacity_rounds,omitempty"`
}

// Fault returns the field for which no attempt at the job can succeed, or an empty string.
func (j Job) Fault() string {
	switch {
	case j.Unreadable != "":
		return j.Unreadable
	case j.Languages.validate() != nil:
		return "language_pair"
	case j.Routing == nil || j.Routing.Validate() != nil:
		return "routing_decision"
	}
	return ""
}

// The reasons for which a job that was not executed is queued: its last_error.
const (
	Overflow       = "overflow_requeued"          // claimed, but not begun within the run's limits (rewrite 6.1)
	NoCapacity     = "provider_capacity_requeued" // the provider has no room for more tokens now
	BatchAbandoned = "batch_abandoned"            // an operator ended its batch; counts an attempt
	Bisected       = "batch_bisected"             // the batch was rejected as a whole: a part of it is submitted next
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
