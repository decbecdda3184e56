package workflows

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// errSuperseded ends the replay of a review that has succeeded meanwhile.
var errSuperseded = errors.New("superseded")

// stage runs one stage until it succeeds or this run dead-letters it.
//
// RecordDeadLetter returns the run ID that it recorded. If that is the ID of this run,
// the workflow fails in the same workflow task: a reset to the last workflow task then
// cuts the history directly after RecordDeadLetter. The new run reads the ID of another
// run there, so it is a replay of that run, and runs the stage again with a full attempt
// budget (processing 8.5). Nothing that needs another workflow task may come between
// RecordDeadLetter and the failure.
func (r *reviewState) stage(ctx workflow.Context, stage review.Stage, run func() (activities.Spent, error)) error {
	for {
		if err := r.showStage(ctx, stage); err != nil {
			return err
		}
		spent, err := run()
		if r.outdated && stage != review.StageNotify {
			r.skipped = review.SkipRuleNewer
			return nil
		}
		if err == nil || temporal.IsCanceledError(err) {
			return err
		}
		letter := deadLetter(ctx, stage, spent, err)
		if len(r.notNotified) > 0 {
			letter.SanitizedContext["not_notified"] = strings.Join(r.notNotified, ", ")
		}
		var recorded activities.Recorded
		if err := book(ctx, "dead-letter", bookkeeping.RecordDeadLetter, activities.DeadLetterParams{Request: r.req, Letter: letter}, &recorded); err != nil {
			return err
		}
		if recorded.RunID == workflow.GetInfo(ctx).WorkflowExecution.RunID {
			return r.fail(ctx, letter, recorded.Escalated, err)
		}
		if err := r.beginReplay(ctx, recorded.RunID); err != nil {
			return err
		}
	}
}

// fail fails the workflow with the dead letter as its details.
func (r *reviewState) fail(ctx workflow.Context, letter failure.DeadLetter, escalated bool, cause error) error {
	if err := r.showFailure(ctx, letter, escalated); err != nil {
		return err
	}
	message := fmt.Sprintf("stage %s of changelist %d dead-lettered: %s", letter.Stage, r.req.Changelist, letter.Hint)
	return temporal.NewApplicationErrorWithOptions(message, string(letter.ErrorClass), temporal.ApplicationErrorOptions{
		NonRetryable: true, Cause: cause, Details: []any{letter},
	})
}

func (r *reviewState) beginReplay(ctx workflow.Context, deadRunID string) error {
	err := book(ctx, "replay", bookkeeping.BeginReplay, activities.ReplayParams{Request: r.req, DeadRunID: deadRunID}, &r.job)
	if err == nil && r.job.State == review.JobSucceeded {
		return errSuperseded
	}
	return err
}

// deadLetter makes the dead letter from the error of the stage's last attempt. spent is
// what earlier activities of the stage used.
func deadLetter(ctx workflow.Context, stage review.Stage, spent activities.Spent, err error) failure.DeadLetter {
	report := reportOf(ctx, err)
	letter := failure.DeadLetter{
		ErrorClass:     report.Class,
		Stage:          string(stage),
		LastStack:      report.Stack,
		FirstFailureAt: report.FirstAt,
		LastFailureAt:  report.At,
		Attempts:       min(spent.Failures+report.Attempt, failure.AttemptBudget),
		Hint:           report.Class.Describe().Hint,
	}
	if !spent.FirstFailureAt.IsZero() {
		letter.FirstFailureAt = spent.FirstFailureAt
	}
	letter.SanitizedContext = map[string]string{
		"stage":      letter.Stage,
		"attempts":   strconv.Itoa(letter.Attempts),
		"upstream":   report.Upstream,
		"request_id": report.RequestID,
	}
	return letter
}

// reportOf returns the interceptor's report on the last attempt. Temporal itself declares
// timeouts: their report is made here.
func reportOf(ctx workflow.Context, err error) failure.Report {
	timeout, timedOut := errors.AsType[*temporal.TimeoutError](err)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if ok && !timedOut { // inside a timeout, app is the error of an earlier attempt
		var report failure.Report
		if app.HasDetails() && app.Details(&report) == nil && report.Class != "" {
			return report
		}
	}
	now := workflow.Now(ctx).UTC()
	report := failure.Report{Class: failure.Unknown, Stack: "the activity ended without a report", Attempt: failure.AttemptBudget, At: now, FirstAt: now}
	if timedOut {
		report.Class = failure.AttemptTimeout
		report.Stack = "attempt timed out: " + timeout.TimeoutType().String()
		if first := activities.FirstFailureBefore(timeout); !first.IsZero() {
			report.FirstAt = first
		}
	}
	if timedOut && ok {
		report.Stack += "; an earlier attempt: " + app.Message()
	}
	return report
}
