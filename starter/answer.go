package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/criticizer/criticizer/review"
)

// An answer is what change-commit and shelve-commit print. Its JSON field names
// are stable. It describes the review that owns the key, which may be one of another
// changelist than the requested one.
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
	// StandIn is set if a simulation answered in place of a model.
	StandIn bool `json:"stand_in,omitempty"`
	// Coverage says what was reviewed, as the mail does.
	Coverage string `json:"coverage,omitempty"`
	// Forgotten is set if an operator has deleted what was stored about the review.
	Forgotten bool `json:"forgotten,omitempty"`
}

// print writes what is known of a review, as JSON or as text, and returns the error that it
// ended with. A trigger prints one line, or the error only.
func (a *app) print(cmd *cobra.Command, known answer, asJSON bool, err error) error {
	switch {
	case a.trigger && err != nil:
		return err
	case asJSON:
		return errors.Join(err, json.NewEncoder(cmd.OutOrStdout()).Encode(known))
	}
	text := known.line()
	if !a.trigger && !known.Spooled {
		if known.Coverage != "" {
			text += "\n  " + known.Coverage
		}
		text += fmt.Sprintf("\n  workflow %s run %s", known.WorkflowID, known.RunID)
	}
	_, errPrint := fmt.Fprintln(cmd.OutOrStdout(), text)
	return errors.Join(err, errPrint)
}

func (a answer) line() string {
	switch {
	case a.Spooled:
		return fmt.Sprintf("review of %s is spooled: %s", a.subject(), a.Reason)
	case a.Shelved:
		return fmt.Sprintf("review of %s starts when the shelf has not changed for a while", a.subject())
	case a.Forgotten:
		return fmt.Sprintf("review of %s was forgotten: nothing is reviewed or sent", a.subject())
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
	outcome := a.Outcome.Named(a.StandIn)
	switch {
	case a.Outcome == "":
		return string(a.State)
	case a.Findings == 1:
		return outcome + ", 1 finding"
	}
	return fmt.Sprintf("%s, %d findings", outcome, a.Findings)
}

// A keyTaken is the error for a key that belongs to the review of another changelist. The
// exit status is 3.
type keyTaken struct {
	owner answer
	asked review.Changelist
}

func (e keyTaken) Error() string {
	state := string(e.owner.State)
	if e.owner.Outcome != "" {
		state += ", " + e.owner.summary()
	}
	of := "the review of " + e.owner.subject()
	if e.owner.Changelist == 0 {
		of = "a workflow that is not a review"
	}
	return fmt.Sprintf("no review of changelist %d was started: key %s belongs to %s: %s", e.asked, e.owner.WorkflowID, of, state)
}

func isTaken(err error) bool {
	_, taken := errors.AsType[keyTaken](err)
	return taken
}

// stateOf returns the state of the job of a review. A review that was terminated is
// canceled: the worker closes its job.
func stateOf(status enumspb.WorkflowExecutionStatus) review.JobState {
	switch status {
	case enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED:
		return review.JobSucceeded
	case enumspb.WORKFLOW_EXECUTION_STATUS_FAILED:
		return review.JobRetryableFailed
	case enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED, enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED, enumspb.WORKFLOW_EXECUTION_STATUS_TIMED_OUT:
		return review.JobCanceled
	}
	return review.JobInProgress // it may be paused
}
