package rewrite

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// An Order requests one job: the fields of the contract that a backend sets. Its JSON
// form is a line of a job file.
type Order struct {
	// ID is optional; the default is a new UUID.
	ID                            string       `json:"job_id,omitempty"`
	RequestID                     string       `json:"rewrite_request_id"`
	Task                          string       `json:"task,omitempty"`
	Surface                       Surface      `json:"surface"`
	Strength                      Strength     `json:"rewrite_strength"`
	Languages                     LanguagePair `json:"language_pair"`
	RecipientUserID               string       `json:"recipient_user_id"`
	RecipientSnapshotID           string       `json:"recipient_snapshot_id"`
	RecipientPreferenceSnapshotID string       `json:"recipient_preference_snapshot_id"`
	// NotBeforeAt defers the job; nil if it is eligible now.
	NotBeforeAt *time.Time `json:"not_before_at"`
	MaxAttempts int        `json:"max_attempts,omitempty"`
	// Routing is nil until the job is routed, by the configuration.
	Routing *RoutingDecision `json:"routing_decision"`
}

// Validate returns an error about the first invalid field, with a valid example. It quotes
// no value: a backend may put the message into a wrong field.
func (o Order) Validate() error {
	for _, id := range []struct{ field, value string }{
		{"rewrite_request_id", o.RequestID},
		{"recipient_user_id", o.RecipientUserID},
		{"recipient_snapshot_id", o.RecipientSnapshotID},
		{"recipient_preference_snapshot_id", o.RecipientPreferenceSnapshotID},
		{"job_id", cmp.Or(o.ID, o.RequestID)}, // optional
	} {
		if uuid.Validate(id.value) != nil || len(id.value) != 36 {
			return fmt.Errorf("%s is no UUID: write one such as 123e4567-e89b-12d3-a456-426614174000", id.field)
		}
	}
	switch {
	case o.Task != "" && o.Task != Task:
		return fmt.Errorf("task is another than %s: leave it out", Task)
	case !slices.Contains(surfaces, o.Surface):
		return fmt.Errorf("surface is none of %v", surfaces)
	case !slices.Contains(strengths, o.Strength):
		return fmt.Errorf("rewrite_strength is none of %v", strengths)
	case o.MaxAttempts < 0 || o.MaxAttempts > MostAttempts:
		return fmt.Errorf("max_attempts is %d: want 1 to %d, or leave it out for %d", o.MaxAttempts, MostAttempts, DefaultMaxAttempts)
	}
	if err := o.Languages.validate(); err != nil {
		return err
	}
	if o.Routing != nil {
		return o.Routing.Validate()
	}
	return nil
}

// PreferenceName matches the names of preferences: they are not redacted, so they cannot hold a text.
var PreferenceName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// A SealedOrder is a validated order with its encrypted texts. Its JSON form is the argument
// of complaint_rewrite.enqueue.
type SealedOrder struct {
	Line        int         `json:"-"` // of the job file, for errors
	Order       Order       `json:"order"`
	Text        SealedText  `json:"text"`
	Preferences *SealedText `json:"preferences,omitempty"`
}

// A SealedText is one encrypted text.
type SealedText struct {
	ID   string `json:"id"` // a keyed hash of the text
	Body []byte `json:"body"`
}
