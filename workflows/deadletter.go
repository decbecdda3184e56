package workflows

import (
	"cmp"
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

// errSuperseded ends the replay of a review that has succeeded meanwhile, or whose
// changelist has a newer review that has.
var errSuperseded = errors.New("superseded")

// stage runs one stage until it succeeds or this run dead-letters it.
//
// RecordDeadLetter returns the run ID that it recorded. If that is the ID of this run,
// the workflow fails in the same workflow task: a reset to the last workflow task then
// cuts the history directly after RecordDeadLetter. The new run reads the ID of another
// run there, so it is a replay of that run, and runs the stage again with a full attempt
// budget (processing 8.5). Nothing that needs another workflow task may come between
// RecordDeadLetter and the failure.
func (r *reviewState) stage(ctx workflow.Context, stage review.Stage, run func() error) error {
	for {
		r.spent = activities.Spent{}
		if err := r.showStage(ctx, stage); err != nil {
			return err
		}
		err := run()
		if r.outdated && stage != review.StageNotify {
			r.skipped = review.SkipRuleNewer
			return nil
		}
		if err == nil || temporal.IsCanceledError(err) || errors.Is(err, errSuperseded) {
			return err
		}
		// After a reset, the failure is one of the former run.
		if adopted, err := r.adoptRun(ctx); err != nil {
			return err
		} else if adopted {
			continue
		}
		deadRun, err := r.recordDeadLetter(ctx, stage, err)
		if err != nil {
			return err
		}
		if r.run == "" {
			err = r.beginReplay(ctx, deadRun)
		} else {
			_, err = r.adoptRun(ctx)
		}
		if err != nil {
			return err
		}
	}
}

// recordDeadLetter dead-letters this run and returns the error that fails it. After a reset
// it returns the run that was dead-lettered, and no error.
func (r *reviewState) recordDeadLetter(ctx workflow.Context, stage review.Stage, cause error) (deadRun string, err error) {
	letter := r.deadLetter(ctx, stage, cause)
	var recorded activities.Recorded
	if err := book(ctx, "dead-letter", bookkeeping.RecordDeadLetter, activities.DeadLetterParams{Request: r.req, Letter: letter}, &recorded); err != nil {
		return "", err
	}
	if recorded.RunID == workflow.GetInfo(ctx).WorkflowExecution.RunID {
		return "", r.fail(ctx, letter, recorded.Escalated, cause)
	}
	return recorded.RunID, nil
}

// adoptRun assigns the review to this run, if a reset made this run from the one that
// came this far. The side effect records the run that makes the call: in the part of the
// history that a reset copies it returns the former run, and after that part this one.
func (r *reviewState) adoptRun(ctx workflow.Context) (adopted bool, err error) {
	if r.run == "" {
		return false, nil
	}
	var run string
	err = workflow.MutableSideEffect(ctx, "run",
		func(ctx workflow.Context) any { return workflow.GetInfo(ctx).WorkflowExecution.RunID },
		func(a, b any) bool { return a == b },
	).Get(&run)
	if err != nil || run == r.run {
		return false, err
	}
	if err := r.beginReplay(ctx, r.run); err != nil {
		return false, err
	}
	r.run = run
	return true, nil
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

func (r *reviewState) beginReplay(ctx workflow.Context, formerRun string) error {
	err := book(ctx, "replay", bookkeeping.BeginReplay, activities.ReplayParams{Request: r.req, DeadRunID: formerRun}, &r.job)
	if err == nil && r.job.State != review.JobInProgress {
		return errSuperseded
	}
	return err
}

// deadLetter makes the dead letter from the error of the stage's last attempt.
func (r *reviewState) deadLetter(ctx workflow.Context, stage review.Stage, err error) failure.DeadLetter {
	report := reportOf(ctx, err, r.spent)
	r.spent.Add(activities.Spent{Failures: report.Failures(), FirstFailureAt: report.FirstAt})
	letter := failure.DeadLetter{
		ErrorClass:     report.Class,
		Stage:          string(stage),
		LastStack:      report.Stack,
		FirstFailureAt: cmp.Or(r.spent.FirstFailureAt, report.FirstAt),
		LastFailureAt:  report.At,
		Attempts:       r.spent.Failures,
		Hint:           report.Class.Describe().Hint,
	}
	letter.SanitizedContext = map[string]string{
		"changelist":     r.req.Changelist.String(),
		"review_version": strconv.Itoa(int(r.req.Version)),
		"stage":          letter.Stage,
		"upstream":       report.Upstream,
		"request_id":     report.RequestID,
		"raw":            truncated(r.fetched.Raw),
		"redacted":       truncated(r.redacted),
		"report":         truncated(r.verdict.Report),
	}
	if failed, ok := errors.AsType[*temporal.ActivityError](err); ok {
		letter.SanitizedContext["activity"] = failed.ActivityID()
	}
	var failed []string
	for _, c := range review.Channels() {
		if attempts, ok := r.notNotified[c]; ok {
			failed = append(failed, string(c))
			letter.SanitizedContext["attempts_"+string(c)] = strconv.Itoa(attempts)
			if letter.SanitizedContext["activity"] != "notify-"+string(c) {
				letter.Attempts += attempts // those of the activity are counted
			}
		}
	}
	letter.SanitizedContext["not_notified"] = strings.Join(failed, ", ")
	letter.SanitizedContext["attempts"] = strconv.Itoa(letter.Attempts)
	return letter
}

// truncated returns the namespace and the first digits of a reference, which identify the
// stored artifact (processing 8.4). The reference is a keyed hash of the content.
func truncated(ref review.ArtifactRef) string {
	namespace, hash, ok := strings.Cut(string(ref), ":")
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s:%.12s", namespace, hash)
}

// isFinal reports whether the activity ended because a retry does not help.
func isFinal(err error) bool {
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	return temporal.IsCanceledError(err) || ok && app.NonRetryable()
}

// reportOf returns the interceptor's report on the last attempt. Temporal itself declares
// timeouts: their report is made here. spent is what earlier activities of the stage used.
func reportOf(ctx workflow.Context, err error, spent activities.Spent) failure.Report {
	timeout, timedOut := errors.AsType[*temporal.TimeoutError](err)
	app, ok := errors.AsType[*temporal.ApplicationError](err)
	if ok && !timedOut { // inside a timeout, app is the error of an earlier attempt
		var report failure.Report
		if app.HasDetails() && app.Details(&report) == nil && report.Class != "" {
			return report
		}
	}
	now := workflow.Now(ctx).UTC()
	report := failure.Report{Class: failure.Unknown, Stack: "the activity ended without a report"}
	if timedOut {
		report = activities.LastHeartbeat(timeout)
		report.Class = failure.AttemptTimeout
		report.Stack = "attempt timed out: " + timeout.TimeoutType().String()
	}
	if timedOut && ok {
		report.Stack += "; an earlier attempt: " + app.Message()
	}
	if report.Attempt == 0 {
		report.Attempt = max(1, failure.AttemptBudget-spent.Failures)
	}
	if report.At = now; report.FirstAt.IsZero() {
		report.FirstAt = now
	}
	return report
}
