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
	"time"

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
	for _, end := range []struct{ name, tag string }{{"from", p.From}, {"to", p.To}} {
		if _, err := language.Parse(end.tag); err != nil || end.tag == "und" {
			return fmt.Errorf("language_pair.%s is no BCP-47 tag: write one such as en or pt-BR", end.name)
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

	// LastError is a class of package failure or one of the words below; never
	// what a provider said.
	LastError   *string    `json:"last_error"`
	LastErrorAt *time.Time `json:"last_error_at"`

	// Routing is nil until the router has decided.
	Routing *RoutingDecision `json:"routing_decision"`

	// BatchID is the batch the job was last in; nil if it was in none.
	BatchID *string `json:"batch_id,omitempty"`
	// BegunAt is when the provider was asked under the present claim; nil if it
	// was not. A claim that is taken over with it set may have been executed.
	BegunAt *time.Time `json:"begun_at,omitempty"`
}

// What a job's last_error says besides the classes of package failure.
const (
	StaleClaim = "stale_claim_requeued"       // its worker was lost (queue 7.2)
	Exhausted  = "stale_claim_failed"         // its worker was lost on the last attempt (queue 8.2)
	Overflow   = "overflow_requeued"          // claimed, but not begun within the run's limits (queue 6.1)
	NoCapacity = "provider_capacity_requeued" // the provider has no room for more tokens now
)
