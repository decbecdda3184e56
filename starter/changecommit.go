package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows"
)

// answer is what change-commit prints; its field names are stable.
type answer struct {
	Changelist review.Changelist `json:"changelist"`
	Version    review.Version    `json:"review_version"`
	// Shelved is set for a shelf, whose review gets its version later.
	Shelved    bool   `json:"shelved,omitempty"`
	WorkflowID string `json:"workflow_id"`
	RunID      string `json:"run_id"`
	// Duplicate is set when the review existed already.
	Duplicate bool `json:"duplicate"`
	// Spooled is set when Temporal could not take the request, for Reason: it is
	// kept on disk, and the fields that only Temporal knows are empty.
	Spooled  bool            `json:"spooled,omitempty"`
	Reason   string          `json:"reason,omitempty"`
	State    review.JobState `json:"state,omitempty"`
	Outcome  review.Outcome  `json:"outcome,omitempty"`
	Findings int             `json:"findings"`
}

func changeCommit(ctx context.Context, args []string, env environment) error {
	flags := newFlagSet("change-commit", env.stdout)
	version := flags.Int("review-version", 1, "")
	key := flags.String("key", "", "")
	serverID := flags.String("server-id", "", "")
	patience := flags.Duration("patience", defaultPatience, "")
	wait := flags.Bool("wait", false, "")
	asJSON := flags.Bool("json", false, "")
	if err := parse(flags, args); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("%w: change-commit wants one changelist, got %d arguments", errUsage, flags.NArg())
	}
	cfg, err := loadConfig(env)
	if err != nil {
		return err
	}
	if *serverID == "" {
		*serverID = cfg.ServerID
	}
	req, err := newRequest(flags.Arg(0), *version, *serverID, *key)
	if err != nil {
		return fmt.Errorf("%w: %w", errUsage, err)
	}
	if *wait && !*asJSON {
		defer cli.Progress(env.stderr, "starter change-commit")()
	}
	a, err := submit(ctx, cfg, req, *wait, *patience)
	if err != nil {
		return err
	}
	return a.print(env, *asJSON)
}

func newRequest(changelist string, version int, serverID, key string) (review.Request, error) {
	cl, err := review.ParseChangelist(changelist)
	if err != nil {
		return review.Request{}, err
	}
	req := review.Request{Changelist: cl, Version: review.Version(version), ServerID: serverID, Key: key}
	if req.Key == "" {
		req.Key = review.DefaultKey(serverID, cl, req.Version)
	}
	return req, req.Validate()
}

// start starts the review or finds the one that exists. The workflow ID is the
// idempotency key, so Temporal itself refuses a second start, whether the
// first is running or closed; the refusal names the run that exists.
func start(ctx context.Context, c client.Client, req review.Request, wait bool) (answer, error) {
	a := answer{Changelist: req.Changelist, Version: req.Version, WorkflowID: req.Key, State: review.JobInProgress}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                                       req.Key,
		TaskQueue:                                activities.QueueBookkeeping,
		WorkflowIDReusePolicy:                    enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		WorkflowIDConflictPolicy:                 enumspb.WORKFLOW_ID_CONFLICT_POLICY_FAIL,
		WorkflowExecutionErrorWhenAlreadyStarted: true,
		TypedSearchAttributes:                    workflows.StartAttributes(req),
	}, workflows.ReviewChangelist, req)
	var exists *serviceerror.WorkflowExecutionAlreadyStarted
	switch {
	case errors.As(err, &exists):
		a.Duplicate = true
		run = c.GetWorkflow(ctx, req.Key, "")
	case err != nil:
		return a, fmt.Errorf("start review of changelist %d: %w", req.Changelist, err)
	}
	a.RunID = run.GetRunID()
	return a, a.follow(ctx, c, run, wait)
}

// follow fills in how the review ended: of one that has ended, or, if wait is
// set, when it has.
func (a *answer) follow(ctx context.Context, c client.Client, run client.WorkflowRun, wait bool) error {
	if !wait {
		if !a.Duplicate {
			return nil
		}
		described, err := c.DescribeWorkflow(ctx, a.WorkflowID, "")
		if err != nil {
			return fmt.Errorf("describe review %s: %w", a.WorkflowID, err)
		}
		a.RunID = described.WorkflowExecution.RunID
		if described.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
			return nil
		}
	}
	var result review.Result
	err := run.Get(ctx, &result)
	var failed *temporal.ApplicationError
	switch {
	case err == nil:
		a.State, a.Outcome, a.Findings = result.Job.State, result.Job.Outcome, result.Job.Findings
		a.Version = result.Job.Version // reviews of the shelf may have taken the one asked for
		a.Duplicate = a.Duplicate || result.Duplicate
		return nil
	case errors.As(err, &failed) && a.Duplicate && !wait:
		a.State = review.JobDeadLettered
		return nil
	case errors.As(err, &failed):
		return fmt.Errorf("review of changelist %d failed (%s): %s", a.Changelist, failed.Type(), failed.Message())
	}
	return fmt.Errorf("wait for review of changelist %d: %w", a.Changelist, err)
}

func (a *answer) print(env environment, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(env.stdout).Encode(a)
	}
	if a.Spooled {
		_, err := fmt.Fprintf(env.stdout, "review of %s is kept for later: %s\n", a.subject(), a.Reason)
		return err
	}
	line := a.line()
	if !env.oneLine {
		line += fmt.Sprintf("\n  workflow %s run %s", a.WorkflowID, a.RunID)
	}
	_, err := fmt.Fprintln(env.stdout, line)
	return err
}

// line says what has become of the request.
func (a *answer) line() string {
	verb := "started"
	switch {
	case a.Shelved:
		return fmt.Sprintf("review of %s waits until nobody shelves it again", a.subject())
	case a.Duplicate:
		verb = "exists already"
	case a.State != review.JobInProgress:
		verb = "ended"
	}
	return fmt.Sprintf("review of %s %s: %s", a.subject(), verb, a.summary())
}

func (a *answer) subject() string {
	if a.Shelved {
		return fmt.Sprintf("shelved changelist %d", a.Changelist)
	}
	return fmt.Sprintf("changelist %d version %d", a.Changelist, a.Version)
}

func (a *answer) summary() string {
	switch {
	case a.Outcome == "":
		return string(a.State)
	case a.Findings == 1:
		return fmt.Sprintf("%s, 1 finding", a.Outcome)
	}
	return fmt.Sprintf("%s, %d findings", a.Outcome, a.Findings)
}

// quiet keeps the Temporal client's own log lines out of a trigger's output,
// which the submitter would see.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}
