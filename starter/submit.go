package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	sdktemporal "go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/internal/cli"
	"github.com/criticizer/criticizer/internal/settings/trigger"
	"github.com/criticizer/criticizer/internal/telemetry/traces"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

const (
	// spoolShare is the part of the timeout that is reserved for the spool: 1/4.
	spoolShare = 4
	// flushTimeout is how long a submit may wait for its trace to be exported.
	flushTimeout = 200 * time.Millisecond
)

// submit starts the review, then as many spooled ones as the time allows; the next call
// continues with the rest. If Temporal does not accept the request in time, submit writes it
// to the spool.
func (a *app) submit(cmd *cobra.Command, cfg *trigger.Config, req review.Request, flags submitFlags) error {
	timeout := flags.timeout - flags.timeout/spoolShare
	ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
	defer cancel()
	var known answer
	n, err := connect(ctx, cfg)
	if err == nil {
		defer n.Close()
		known, err = startReview(ctx, cfg, n, req, false)
	}
	switch {
	case err == nil:
		_, _ = drainSpool(ctx, cfg, n)
	case !isTaken(err):
		reason := explainTimeout(ctx, cfg, err, timeout)
		if err := newSpool(cfg).put(req); err != nil {
			return fmt.Errorf("%w; the request could not be spooled either: %w; start it again by hand", reason, err)
		}
		known, err = answer{
			Changelist: req.Changelist, Version: req.Version, Shelved: req.Shelved, WorkflowID: req.Key, Spooled: true, Reason: reason.Error(),
		}, nil
	}
	return a.print(cmd, known, flags.json, err)
}

// startReview starts the review or finds the existing one. In a new namespace it first
// registers the search attributes: the first change may come before the first worker.
func startReview(ctx context.Context, cfg *trigger.Config, n temporal.Namespace, req review.Request, wait bool) (answer, error) {
	a := answer{Changelist: req.Changelist, Version: req.Version, Shelved: req.Shelved, WorkflowID: req.Key, State: review.JobInProgress}
	start := func() (client.WorkflowRun, error) {
		if req.Shelved {
			return signalShelf(ctx, n, req, cfg.Shelf.Quiet)
		}
		return n.ExecuteWorkflow(ctx, contract.StartOptions(req), contract.ReviewChangelist, req)
	}
	run, err := start()
	if _, refused := errors.AsType[*serviceerror.InvalidArgument](err); refused {
		if registering := n.RegisterAttributes(ctx, contract.Attributes()...); registering != nil { // this account may lack the permission that workers have
			return a, fmt.Errorf("register search attributes: %w, after: %s", registering, err.Error()) // not err: it refuses every request
		}
		run, err = start()
	}
	if _, exists := errors.AsType[*serviceerror.WorkflowExecutionAlreadyStarted](err); exists {
		a.Duplicate = true
		run = n.GetWorkflow(ctx, req.Key, "")
	} else if err != nil {
		return a, fmt.Errorf("start review of changelist %d: %w", req.Changelist, err)
	}
	a.RunID = run.GetRunID()
	if req.Shelved { // its review starts later
		return a, nil
	}
	return a, a.fetchResult(ctx, n, run, wait)
}

// fetchResult adds the result of a review that has ended. With wait it first
// waits for the end. If the key belongs to the review of another changelist, it describes
// that review and returns an error.
func (a *answer) fetchResult(ctx context.Context, c client.Client, run client.WorkflowRun, wait bool) error {
	asked := a.Changelist
	if a.Duplicate {
		described, err := c.DescribeWorkflow(ctx, a.WorkflowID, "")
		if err != nil {
			return fmt.Errorf("describe review %s: %w", a.WorkflowID, err)
		}
		a.RunID, a.State = described.WorkflowExecution.RunID, stateOf(described.Status)
		owner, _ := described.TypedSearchAttributes.GetInt64(contract.AttributeChangelist)
		a.Changelist = review.Changelist(owner) // 0 for a workflow that is not a review
		if version, ok := described.TypedSearchAttributes.GetInt64(contract.AttributeReviewVersion); ok {
			a.Version = review.Version(version)
		}
	}
	switch {
	case a.State == review.JobSucceeded: // it has a result
	case a.Changelist != asked:
		return keyTaken{*a, asked}
	case !wait:
		return nil
	}
	var result review.Result
	err := run.Get(ctx, &result)
	failed, isFailure := errors.AsType[*sdktemporal.ApplicationError](err)
	switch {
	case err == nil:
		a.State, a.Outcome, a.Findings, a.StandIn = result.Job.State, result.Job.Outcome, result.Job.Findings, result.StandIn
		a.Coverage, a.Forgotten = result.Job.Coverage, result.Job.Forgotten
		a.Version = result.Job.Version // higher than requested if reviews of the shelf used that version
		a.Duplicate = a.Duplicate || result.Duplicate
		if a.Changelist = result.Job.Changelist; a.Changelist != asked {
			return keyTaken{*a, asked}
		}
		return nil
	case isFailure:
		return fmt.Errorf("review of changelist %d failed (%s): %s", a.Changelist, failed.Type(), failed.Message())
	}
	if ctx.Err() != nil {
		return cli.Advise(errors.New("interrupted: the review continues without this command"), fmt.Sprintf("to see its state: criticizer status %d", a.Changelist))
	}
	return fmt.Errorf("wait for review of changelist %d: %w", a.Changelist, err)
}

// connect dials Temporal. Its client logs nothing, because Perforce shows the
// output of a trigger to the user.
func connect(ctx context.Context, cfg *trigger.Config) (temporal.Namespace, error) {
	discard := slog.New(slog.DiscardHandler)
	interceptors, flush, err := traces.Start(ctx, discard, "criticizer-starter", flushTimeout)
	if err != nil {
		return temporal.Namespace{}, err
	}
	namespace := cfg.Temporal
	namespace.Interceptors, namespace.OnClose = interceptors, flush
	return temporal.Dial(ctx, log.NewStructuredLogger(discard), namespace)
}

// explainTimeout replaces the error of an expired timeout. gRPC may report it
// before the context does.
func explainTimeout(ctx context.Context, cfg *trigger.Config, err error, timeout time.Duration) error {
	if _, late := errors.AsType[*serviceerror.DeadlineExceeded](err); late || ctx.Err() != nil {
		return fmt.Errorf("no answer from Temporal at %s (temporal.address) within %s", cfg.Temporal.Address, timeout)
	}
	return err
}
