// Package review defines the data of a review. It has structs and pure functions, no I/O.
//
// Read the files in the order of a review: review.go has the request and its job,
// change.go the fetched change and its files, context.go the code around them, draft.go
// what the model found, report.go and anchor.go the findings that are reported and
// [Report.Judge], which makes the outcome, and delivery.go the notification.
package review

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Changelist is the number of a Perforce changelist.
type Changelist int64

var changelistPattern = regexp.MustCompile(`^[1-9][0-9]{0,9}$`)

// ParseChangelist parses the changelist number of a trigger: digits only, without sign,
// leading zero or space.
func ParseChangelist(s string) (Changelist, error) {
	if !changelistPattern.MatchString(s) {
		return 0, fmt.Errorf("changelist %q is not a positive number of at most 10 digits", s)
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("parse changelist %q: %w", s, err)
	}
	return Changelist(n), nil
}

// String returns the number in decimal.
func (c Changelist) String() string { return strconv.FormatInt(int64(c), 10) }

// A Version numbers the reviews of one changelist, from 1. The rerun of a succeeded
// review needs a higher version (notification 6.2).
type Version int

// A Request requests one review. It is the input of the workflow: the field names are
// wire format.
type Request struct {
	Changelist Changelist `json:"changelist"`
	Version    Version    `json:"review_version"`
	ServerID   string     `json:"server_id"`
	// Key is the idempotency key; it is also the workflow ID.
	Key string `json:"idempotency_key"`
	// Shelved requests a review of the shelf of the changelist.
	Shelved bool `json:"shelved,omitempty"`
	// OnlyNew is set if the review is to report only findings that the version before lacks.
	OnlyNew bool `json:"only_new,omitempty"`
	// ShelvedAt is when the trigger saw the shelf, zero if that is not known.
	ShelvedAt time.Time `json:"shelved_at,omitzero"`
}

// keyPattern does not limit the length: counted repetitions are slow to compile, which
// delays the trigger.
var keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$`)

const maxKey = 200

// Validate returns an error for the first invalid field.
func (r Request) Validate() error {
	switch {
	case r.Changelist < 1:
		return fmt.Errorf("changelist %d is not positive", r.Changelist)
	case r.Version < 1:
		return fmt.Errorf("review version %d is not positive", r.Version)
	case len(r.Key) > maxKey, !keyPattern.MatchString(r.Key):
		return fmt.Errorf("idempotency key %q: want 1 to 200 letters, digits or . _ : @ / + -, beginning with a letter or digit", r.Key)
	}
	return nil
}

// DefaultKey returns the default idempotency key:
// review-<server>-<changelist>-v<version>.
func DefaultKey(serverID string, cl Changelist, v Version) string {
	return fmt.Sprintf("review-%s-%d-v%d", keyPart(serverID), cl, v)
}

// ShelfKey returns the key of the shelf of a changelist: shelf-<server>-<changelist>.
func ShelfKey(serverID string, cl Changelist) string {
	return fmt.Sprintf("shelf-%s-%d", keyPart(serverID), cl)
}

// ShelfReviewKey returns the idempotency key of a review of the shelf.
func ShelfReviewKey(serverID string, cl Changelist, v Version) string {
	return fmt.Sprintf("%s-v%d", ShelfKey(serverID, cl), v)
}

// keyPart replaces the characters of a server ID that keys do not allow.
func keyPart(serverID string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, serverID)
}

// A Stage is a part of a review with its own attempt budget.
type Stage string

// The stages of a review, in order. They are wire format.
const (
	StageFetch  Stage = "fetch"
	StageLLM    Stage = "llm"
	StageNotify Stage = "notify"
)

// Stages lists the stages.
func Stages() []Stage { return []Stage{StageFetch, StageLLM, StageNotify} }

// An Outcome is the result of a review. A failure never looks like a clean review.
type Outcome string

// The outcomes of a review. They are wire format.
const (
	OutcomeClean       Outcome = "clean"        // everything was reviewed, without findings
	OutcomeFindings    Outcome = "findings"     // everything was reviewed, with findings
	OutcomePartial     Outcome = "partial"      // part of it was not reviewed; the report says what and why
	OutcomeNotReviewed Outcome = "not_reviewed" // nothing was reviewed; the report says why
	OutcomeSuperseded  Outcome = "superseded"   // the replay of a review that has succeeded meanwhile
)

// Named returns the outcome for people. Without a model, clean is not an approval.
func (o Outcome) Named(standIn bool) string {
	if standIn {
		return string(o) + " (no model read it)"
	}
	return string(o)
}

// A JobState is the state of a [Job].
type JobState string

// The states of a job, which are wire format. A job succeeds only when all its
// recipients are notified (notification 6.5).
const (
	JobInProgress      JobState = "in_progress"
	JobSucceeded       JobState = "succeeded"
	JobRetryableFailed JobState = "retryable_failed"
	JobCanceled        JobState = "canceled"
)

// A Job is the database row of one review.
type Job struct {
	ID         int64      `json:"job_id"`
	Key        string     `json:"idempotency_key"`
	Changelist Changelist `json:"changelist"`
	Version    Version    `json:"review_version"`
	State      JobState   `json:"state"`
	// Outcome and Findings are set in state succeeded.
	Outcome  Outcome `json:"outcome,omitempty"`
	Findings int     `json:"findings"`
	// Coverage says what the review read, in the words of [Tally.Text].
	Coverage string `json:"coverage,omitempty"`
	// SkippedBy is the rule by which the change was not reviewed, or empty.
	SkippedBy SkipRule `json:"skipped_by,omitempty"`
	// Shelved is set for the review of a shelf.
	Shelved bool `json:"shelved,omitempty"`
	// Forgotten is set if an operator has deleted what was stored about the review.
	Forgotten  bool   `json:"forgotten,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

// An OpenResult is the answer to a request: run it, or not (notification 6.2).
type OpenResult struct {
	Decision Decision `json:"decision"`
	Job      Job      `json:"job"`
	// OtherServer is the Perforce server of the job, if the request was refused because
	// it names another server.
	OtherServer string `json:"other_server,omitempty"`
	// Link is the URL of the change, for people; empty without a configured one.
	Link string `json:"link,omitempty"`
	// FormerRun is the run that the job is of, if that is another run of this request.
	FormerRun string `json:"-"`
}

// An EarlierReview is an earlier review of the same change: another version, or of its shelf.
type EarlierReview struct {
	Changelist Changelist `json:"changelist"` // differs if a submit renumbered it
	Version    Version    `json:"review_version"`
	// Report is empty if it is unknown.
	Report ArtifactRef `json:"report,omitempty"`
	// Until is when the next review began, or zero.
	Until time.Time `json:"-"`
}

// A Decision is what to do with a request.
type Decision string

// The decisions. They are wire format.
const (
	DecisionRun       Decision = "run"       // start the review
	DecisionDuplicate Decision = "duplicate" // return the existing job
	DecisionRefused   Decision = "refused"   // a higher version exists, or the job belongs to another server
)

// A Result is the result of a review workflow, without content.
type Result struct {
	Job Job `json:"job"`
	// Duplicate is set if the job belongs to an earlier review.
	Duplicate bool `json:"duplicate"`
	// StandIn is set if a simulation answered in place of a model.
	StandIn bool `json:"stand_in,omitempty"`
}

// A Replay is one replay of a dead-lettered review.
type Replay struct {
	DeadRunID string
	NewRunID  string
	Identity  string // who reset the run, as Temporal recorded it
	Reason    string // as the operator gave it
}
