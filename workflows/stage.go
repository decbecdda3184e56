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

// errSuperseded ends a replay of a review that has succeeded meanwhile.
var errSuperseded = errors.New("superseded")

// stage runs one stage until it succeeds or this run dead-letters it.
//
// RecordDeadLetter answers with the run ID it recorded. If that is this run's,
// the workflow fails, in the same workflow task: a reset to the last workflow
// task cuts the history right behind the recording. The reset run then reads
// another run's ID here, knows itself to be a replay of it, and runs the stage
// again with a fresh budget (criticizer-processing 8.5). So the branch is on a
// recorded run ID, and nothing may come between the recording and the failure
// that needs another workflow task.
func (r *reviewing) stage(ctx workflow.Context, stage review.Stage, run func() (activities.Spent, error)) error {
	for {
		if err := showStage(ctx, stage); err != nil {
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
		if len(r.untold) > 0 {
			letter.SanitizedContext["untold"] = strings.Join(r.untold, ", ")
		}
		var recorded activities.Recorded
		if err := book(ctx, "dead-letter", bookkeeping.RecordDeadLetter, activities.DeadLetterParams{Request: r.req, Letter: letter}, &recorded); err != nil {
			return err
		}
		if recorded.RunID == workflow.GetInfo(ctx).WorkflowExecution.RunID {
			return r.die(ctx, letter, recorded.Escalated, err)
		}
		if err := r.beginReplay(ctx, recorded.RunID); err != nil {
			return err
		}
	}
}

// die fails the workflow with the dead letter as its details.
func (r *reviewing) die(ctx workflow.Context, letter failure.DeadLetter, escalated bool, cause error) error {
	if err := showDeath(ctx, letter.ErrorClass, escalated); err != nil {
		return err
	}
	message := fmt.Sprintf("stage %s of changelist %d dead-lettered: %s", letter.Stage, r.req.Changelist, letter.Hint)
	return temporal.NewApplicationErrorWithOptions(message, string(letter.ErrorClass), temporal.ApplicationErrorOptions{
		NonRetryable: true, Cause: cause, Details: []any{letter},
	})
}

func (r *reviewing) beginReplay(ctx workflow.Context, deadRunID string) error {
	err := book(ctx, "replay", bookkeeping.BeginReplay, activities.ReplayParams{Request: r.req, DeadRunID: deadRunID}, &r.job)
	if err == nil && r.job.State == review.JobSucceeded {
		return errSuperseded
	}
	return err
}

// deadLetter makes the payload of criticizer-processing 8.4 from the error of
// the stage's last attempt. spent is what earlier activities of the stage used.
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

// reportOf returns what the interceptor told about the last attempt, or, for a
// failure that Temporal declared itself, what can be said without it.
func reportOf(ctx workflow.Context, err error) failure.Report {
	timeout, timedOut := errors.AsType[*temporal.TimeoutError](err)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if ok && !timedOut { // else it is what Temporal remembers of an earlier attempt
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
		report.Stack += "; an attempt before: " + app.Message()
	}
	return report
}
