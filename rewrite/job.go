// Package rewrite holds the nouns of the complaint_rewrite queue: jobs, routing
// decisions, runs and batches, and the rules by which they change. It does no
// I/O. Sections cited as "queue N" are those of the contract
// complaint_rewrite_queue_processing_v1.
//
// The queue shares Temporal, Postgres, redaction and failure classes with
// reviews, and nothing else: neither needs the other to be understood.
package rewrite

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/language"
)

// Task is the only task of this queue.
const Task = "complaint_rewrite"

// DefaultMaxAttempts is how often a job is tried unless it says otherwise
// (queue 4).
const DefaultMaxAttempts = 2

// A Surface is where in the product the complaint was written.
type Surface string

// The surfaces.
const (
	WeeklyHarmony Surface = "weekly_harmony"
	DirectMessage Surface = "direct_message"
	OtherSurface  Surface = "other"
)

// Surfaces returns all surfaces.
func Surfaces() []Surface { return []Surface{WeeklyHarmony, DirectMessage, OtherSurface} }

// A Strength is how much of the text may be changed. Each has its own prompt.
type Strength string

// The strengths.
const (
	LightTouch  Strength = "light_touch"
	FullReframe Strength = "full_reframe"
)

// Strengths returns all strengths.
func Strengths() []Strength { return []Strength{LightTouch, FullReframe} }

// A LanguagePair is the languages of a rewrite as BCP-47 tags.
type LanguagePair struct {
	From string `json:"from"` // what the complaint is written in
	To   string `json:"to"`   // what the recipient reads
}

func (p LanguagePair) validate() error {
	for _, tag := range []string{p.From, p.To} {
		if _, err := language.Parse(tag); err != nil || tag == "und" {
			return fmt.Errorf("language %q is no BCP-47 tag: write one such as en or pt-BR", tag)
		}
	}
	return nil
}

// A Job is one rewrite for one recipient (queue 4). RequestID and
// RecipientUserID together are unique. All times are UTC and the database's.
type Job struct {
	ID                            string       `json:"job_id"`
	RequestID                     string       `json:"rewrite_request_id"`
	Task                          string       `json:"task"`
	Surface                       Surface      `json:"surface"`
	Strength                      Strength     `json:"rewrite_strength"`
	Languages                     LanguagePair `json:"language_pair"`
	RecipientUserID               string       `json:"recipient_user_id"`
	RecipientSnapshotID           string       `json:"recipient_snapshot_id"`
	RecipientPreferenceSnapshotID string       `json:"recipient_preference_snapshot_id"`

	Status Status `json:"status"`

	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// NotBeforeAt defers the job; nil if it may run at once.
	NotBeforeAt *time.Time `json:"not_before_at"`
	ClaimedAt   *time.Time `json:"claimed_at"`
	ClaimedBy   *string    `json:"claimed_by"`

	AttemptCount int `json:"attempt_count"`
	MaxAttempts  int `json:"max_attempts"`

	// LastError is a class of package failure, or [StaleClaim], [Overflow] or
	// [Exhausted]; never a provider's words.
	LastError   *string    `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`

	Routing RoutingDecision `json:"routing_decision"`
}

// What a job's last_error says besides the classes of package failure.
const (
	StaleClaim = "stale_claim_requeued" // its worker was lost (queue 7.2)
	Exhausted  = "stale_claim_failed"   // its worker was lost on the last attempt (queue 8.2)
	Overflow   = "overflow_requeued"    // claimed, but not begun before the run's limit (queue 6.1)
)

// Validate reports the first field that a new job may not have so, and what to
// write instead.
func (j Job) Validate() error {
	for _, id := range []struct{ field, value string }{
		{"job_id", j.ID},
		{"rewrite_request_id", j.RequestID},
		{"recipient_user_id", j.RecipientUserID},
		{"recipient_snapshot_id", j.RecipientSnapshotID},
		{"recipient_preference_snapshot_id", j.RecipientPreferenceSnapshotID},
	} {
		if uuid.Validate(id.value) != nil || len(id.value) != 36 {
			return fmt.Errorf("%s %q is no UUID: write one such as 123e4567-e89b-12d3-a456-426614174000", id.field, id.value)
		}
	}
	switch {
	case j.Task != Task:
		return fmt.Errorf("task is %q: want %s", j.Task, Task)
	case !slices.Contains(Surfaces(), j.Surface):
		return fmt.Errorf("there is no surface %q: want one of %v", j.Surface, Surfaces())
	case !slices.Contains(Strengths(), j.Strength):
		return fmt.Errorf("there is no rewrite_strength %q: want one of %v", j.Strength, Strengths())
	case j.Status != Queued:
		return fmt.Errorf("status is %q: a new job is %s", j.Status, Queued)
	case j.MaxAttempts < 1 || j.AttemptCount != 0:
		return fmt.Errorf("max_attempts is %d and attempt_count %d: want 1 or more, and 0", j.MaxAttempts, j.AttemptCount)
	}
	if err := j.Languages.validate(); err != nil {
		return fmt.Errorf("language_pair: %w", err)
	}
	return j.Routing.Validate()
}
