package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/criticizer/criticizer/review"
)

// An answer is what change-commit and shelve-commit print. Its JSON field names
// are stable.
type answer struct {
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	// Shelved is set for a shelf, whose review gets its version later.
	Shelved    bool   `json:"shelved,omitempty"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	// Duplicate is set if the review existed before.
	Duplicate bool `json:"duplicate"`
	// Spooled is set if Temporal did not accept the request, for Reason. Then the
	// fields that come from Temporal are empty.
	Spooled  bool            `json:"spooled,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	State    review.JobState `json:"state,omitempty"`
	Outcome  review.Outcome  `json:"outcome,omitempty"`
	Findings int             `json:"findings"`
}

// print writes the answer as JSON or as text; oneLine leaves out the workflow.
func (a answer) print(w io.Writer, asJSON, oneLine bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(a)
	}
	text := a.line()
	if !oneLine && !a.Spooled {
		text += fmt.Sprintf("\n  workflow %s run %s", a.WorkflowID, a.RunID)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}

func (a answer) line() string {
	switch {
	case a.Spooled:
		return fmt.Sprintf("review of %s is spooled: %s", a.subject(), a.Reason)
	case a.Shelved:
		return fmt.Sprintf("review of %s starts when the shelf has not changed for a while", a.subject())
	case a.Duplicate:
		return fmt.Sprintf("review of %s exists already: %s", a.subject(), a.summary())
	case a.State != review.JobInProgress:
		return fmt.Sprintf("review of %s ended: %s", a.subject(), a.summary())
	}
	return fmt.Sprintf("review of %s started: %s", a.subject(), a.summary())
}

func (a answer) subject() string {
	if a.Shelved {
		return fmt.Sprintf("shelved changelist %d", a.Changelist)
	}
	return fmt.Sprintf("changelist %d version %d", a.Changelist, a.Version)
}

func (a answer) summary() string {
	switch {
	case a.Outcome == "":
		return string(a.State)
	case a.Findings == 1:
		return fmt.Sprintf("%s, 1 finding", a.Outcome)
	}
	return fmt.Sprintf("%s, %d findings", a.Outcome, a.Findings)
}
