package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/review"
)

func (a *app) changeCommit() *cobra.Command {
	var version int
	var key string
	var submit submitFlags
	var wait bool
	cmd := &cobra.Command{
		Use:   "change-commit CHANGELIST",
		Short: "Start the review of a submitted changelist",
		Long: `Start the review of a submitted changelist and return at once. If the review
exists, print it and change nothing.

If Temporal does not answer in time, the request is written to the spool
(starter.spool_dir). The next call that reaches Temporal, or drain,
starts the spooled reviews.`,
		Example: `  criticizer-starter change-commit 4711
  criticizer-starter change-commit --wait --review-version 2 4711`,
		Args: a.changelistArg,
		RunE: func(cmd *cobra.Command, args []string) error {
			cfg, err := trigger.Load(a.configPath, a.getenv)
			if err != nil {
				return err
			}
			req, err := newRequest(a.changelist(cmd, args), review.Request{Version: review.Version(version), ServerID: cmp.Or(submit.serverID, cfg.ServerID), Key: key})
			if err != nil {
				return cli.UsageError{Err: err}
			}
			if !wait {
				return a.submit(cmd, cfg, req, submit)
			}
			if !submit.json {
				defer cli.Progress(cmd.ErrOrStderr(), cmd.CommandPath())()
			}
			answer, err := connectAndStart(cmd.Context(), cfg, req, cmd.ErrOrStderr())
			if err != nil && !isTaken(err) {
				return err
			}
			return a.print(cmd, answer, submit.json, err)
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&version, "review-version", 1, "`version` of the review; the rerun of a finished review needs a higher one")
	flags.StringVar(&key, "key", "", "idempotency key and workflow ID (default review-SERVER-CHANGELIST-vVERSION)")
	flags.BoolVar(&wait, "wait", false, "wait for the end of the review and print its outcome; do not spool")
	submit.register(cmd)
	return cmd
}

// submitFlags are the flags of both commands that submit a review.
type submitFlags struct {
	serverID string
	timeout  time.Duration
	json     bool
}

func (f *submitFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.serverID, "server-id", "", "Perforce server `ID` in the workflow ID (default: server_id of the configuration)")
	flags.DurationVar(&f.timeout, "timeout", defaultTimeout, "how long to try Temporal and the spool")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
}

// newRequest completes and checks a request for the changelist.
func newRequest(changelist string, req review.Request) (review.Request, error) {
	cl, err := review.ParseChangelist(changelist)
	if err != nil {
		return req, err
	}
	req.Changelist = cl
	if req.Shelved {
		req.Key = review.ShelfKey(req.ServerID, cl)
	} else if req.Key == "" {
		req.Key = review.DefaultKey(req.ServerID, cl, req.Version)
	}
	return req, req.Validate()
}

// changelistArg is [cobra.ExactArgs] of one. A trigger may get the changelist elsewhere.
func (a *app) changelistArg(cmd *cobra.Command, args []string) error {
	if a.trigger && len(args) == 0 {
		return nil
	}
	return cobra.ExactArgs(1)(cmd, args)
}

// maxDictionary bounds the dictionary of a trigger, in bytes.
const maxDictionary = 1 << 20

// inDictionary matches the changelist in a dictionary, and not oldchangelist.
var inDictionary = regexp.MustCompile(`^\W*change(?:list)?\W+(\d{1,10})\b`)

// changelist returns the changelist of the arguments. A server with triggers.io=1 writes a
// dictionary to the standard input of a trigger, which has to read it. Such a server may
// leave out the argument, or pass %changelist% as it is.
func (a *app) changelist(cmd *cobra.Command, args []string) string {
	if !a.trigger {
		return args[0]
	}
	given := strings.Join(args, "")
	input := bufio.NewScanner(io.LimitReader(cmd.InOrStdin(), maxDictionary))
	for (given == "" || strings.Contains(given, "%")) && input.Scan() {
		if found := inDictionary.FindStringSubmatch(input.Text()); found != nil {
			given = found[1]
		}
	}
	go func() {
		for input.Scan() { // the server waits until the rest is read
		}
	}()
	return given
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

// print prints what is known of a review, and returns the error that it ended with. A
// trigger prints the error only.
func (a *app) print(cmd *cobra.Command, known answer, asJSON bool, err error) error {
	if err != nil && a.trigger {
		return err
	}
	return errors.Join(err, known.print(cmd.OutOrStdout(), asJSON, a.trigger))
}

// print writes the answer as JSON or as text; oneLine leaves out the workflow.
func (a answer) print(w io.Writer, asJSON, oneLine bool) error {
	if asJSON {
		return json.NewEncoder(w).Encode(a)
	}
	text := a.line()
	if !oneLine && !a.Spooled {
		if a.Coverage != "" {
			text += "\n  " + a.Coverage
		}
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
