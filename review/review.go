// Package review holds the nouns of a review: the changelist, the review
// version, the change that was fetched, the findings and the report that is
// mailed. Structs and pure functions only; no I/O.
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

// ParseChangelist reads a changelist number as a trigger passes it: digits
// only, without sign, leading zero or blank.
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

// A Version numbers the reviews of one changelist, from 1. A rerun of a
// succeeded review needs a strictly higher one (review-notification 6.2).
type Version int

// A Request asks for one review. It is the input of the workflow, so its
// field names are wire format.
type Request struct {
	Changelist Changelist `json:"changelist"`
	Version    Version    `json:"review_version"`
	ServerID   string     `json:"server_id"`
	// Key is the idempotency key; it is also the workflow ID.
	Key string `json:"idempotency_key"`
	// Shelved asks for a review of what is shelved in the changelist.
	Shelved bool `json:"shelved,omitempty"`
}

// keyPattern leaves the length out: counted repetitions are slow to compile, and
// a submit waits.
var keyPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$`)

const maxKey = 200

// Validate reports the first field of r that cannot be reviewed.
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

// DefaultKey is the idempotency key of a review whose caller gave none:
// review-<server>-<changelist>-v<version>.
func DefaultKey(serverID string, cl Changelist, v Version) string {
	return fmt.Sprintf("review-%s-%d-v%d", keyPart(serverID), cl, v)
}

// ShelfKey names what is shelved in a changelist: shelf-<server>-<changelist>.
func ShelfKey(serverID string, cl Changelist) string {
	return fmt.Sprintf("shelf-%s-%d", keyPart(serverID), cl)
}

// ShelfReviewKey is the idempotency key of one review of it.
func ShelfReviewKey(serverID string, cl Changelist, v Version) string {
	return fmt.Sprintf("%s-v%d", ShelfKey(serverID, cl), v)
}

// keyPart is a server id as it is written in keys.
func keyPart(serverID string) string {
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '.' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}, serverID)
}

// A Stage is a part of a review with its own attempt budget (criticizer-processing 8.3).
type Stage string

// The stages of a review, in order. They are wire format.
const (
	StageFetch  Stage = "fetch"
	StageLLM    Stage = "llm"
	StageNotify Stage = "notify"
)

// An Outcome says how a review ended. A failure never looks like a clean review.
type Outcome string

// The outcomes of a review. They are wire format.
const (
	OutcomeClean       Outcome = "clean"        // everything was reviewed, nothing was found
	OutcomeFindings    Outcome = "findings"     // everything was reviewed, something was found
	OutcomePartial     Outcome = "partial"      // some of it was not reviewed; the report says what and why
	OutcomeNotReviewed Outcome = "not_reviewed" // none of it was reviewed; the report says why
	OutcomeSuperseded  Outcome = "superseded"   // a replay of a review that had been finished meanwhile
)

// A JobState is the state of the row that stands for one review.
type JobState string

// The states of a job (review-notification 6). They are wire format.
const (
	JobInProgress      JobState = "in_progress"
	JobRetryableFailed JobState = "retryable_failed"
	JobSucceeded       JobState = "succeeded"
	JobDeadLettered    JobState = "dead_lettered"
	JobCanceled        JobState = "canceled"
)

// A Job is the row that stands for one review, as callers see it.
type Job struct {
	ID         int64      `json:"job_id"`
	Key        string     `json:"idempotency_key"`
	Changelist Changelist `json:"changelist"`
	Version    Version    `json:"review_version"`
	State      JobState   `json:"state"`
	// Outcome and the counts are set once the state is succeeded.
	Outcome  Outcome `json:"outcome,omitempty"`
	Findings int     `json:"findings"`
	// SkippedBy says why nothing was reviewed, empty if it was to be.
	SkippedBy SkipRule `json:"skipped_by,omitempty"`
	// Shelved is set if the review is of a shelf.
	Shelved    bool   `json:"shelved,omitempty"`
	WorkflowID string `json:"workflow_id,omitempty"`
	RunID      string `json:"run_id,omitempty"`
}

// An Opening is the answer of the dedupe gate (review-notification 6.1, 6.2).
type Opening struct {
	Verdict Verdict `json:"verdict"`
	Job     Job     `json:"job"`
	// OtherServer is set if the request was refused because the job is of this
	// Perforce server, and the request of another.
	OtherServer string `json:"other_server,omitempty"`
}

// A Prior is an earlier review of what is the same change to its author: another
// version, or its shelf.
type Prior struct {
	Changelist Changelist `json:"changelist"` // another one if a submit renumbered it
	Version    Version    `json:"review_version"`
	// Report is empty if it is not known.
	Report ArtifactRef `json:"report,omitempty"`
	// Until is when the review after it began, zero where that does not matter.
	Until time.Time `json:"-"`
}

// A Verdict says what to do with a request for a review.
type Verdict string

// The verdicts of the dedupe gate. They are wire format.
const (
	VerdictRun       Verdict = "run"       // review it
	VerdictDuplicate Verdict = "duplicate" // return the job that exists; no second review
	VerdictRefused   Verdict = "refused"   // a higher version of the changelist exists, or it is another server's
)

// A Result is what a review workflow returns: verdicts and counts, no content.
type Result struct {
	Job Job `json:"job"`
	// Duplicate is set when an earlier review was returned instead of a new one.
	Duplicate bool `json:"duplicate"`
}

// A Replay is one attempt to repair a dead-lettered review (criticizer-processing 8.5).
type Replay struct {
	DeadRunID string
	NewRunID  string
	Identity  string // who reset the run, as Temporal recorded it
	Reason    string // what they said
}
