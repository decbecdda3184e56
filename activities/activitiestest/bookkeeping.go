package activitiestest

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// OpenJob implements the dedupe gate of one changelist.
func (w *World) OpenJob(_ context.Context, req review.Request, runID string) (opening review.Opening, err error) {
	err = w.call("OpenJob", func() {
		switch {
		case w.job.Version > req.Version:
			opening.Verdict = review.VerdictRefused
		case w.job.Version == req.Version && w.job.State == review.JobSucceeded:
			opening.Verdict = review.VerdictDuplicate
		default:
			opening.Verdict = review.VerdictRun
			w.job = review.Job{ID: 1, Key: req.Key, Changelist: req.Changelist, Version: req.Version, State: review.JobInProgress, RunID: runID, Shelved: req.Shelved}
		}
		opening.Job = w.job
	})
	return opening, err
}

// FinishJob marks the job succeeded.
func (w *World) FinishJob(_ context.Context, _ string, outcome review.Outcome, findings int, report review.ArtifactRef) (job review.Job, err error) {
	err = w.call("FinishJob", func() {
		w.job.State, w.job.Outcome, w.job.Findings = review.JobSucceeded, outcome, findings
		w.report, job = report, w.job
	})
	return job, err
}

// SkipJob marks the job succeeded without a review.
func (w *World) SkipJob(_ context.Context, _ string, by review.SkipRule) (job review.Job, err error) {
	err = w.call("SkipJob", func() {
		w.job.State, w.job.Outcome, w.job.SkippedBy = review.JobSucceeded, review.OutcomeNotReviewed, by
		job = w.job
	})
	return job, err
}

// CancelJob marks the job canceled.
func (w *World) CancelJob(context.Context, string) error {
	return w.call("CancelJob", func() { w.job.State = review.JobCanceled })
}

// RecordDeadLetter stores the run's letter. It is escalated if the run replays a letter of
// the same non-retryable class.
func (w *World) RecordDeadLetter(_ context.Context, _ review.Request, runID string, letter failure.DeadLetter) (escalated bool, err error) {
	err = w.call("RecordDeadLetter", func() {
		w.letters[runID], w.job.State = letter, review.JobDeadLettered
		escalated = w.replays != nil && !letter.ErrorClass.Retryable() &&
			w.letters[w.replays[len(w.replays)-1].DeadRunID].ErrorClass == letter.ErrorClass
	})
	return escalated, err
}

// BeginReplay reopens the job unless it has succeeded.
func (w *World) BeginReplay(_ context.Context, _ review.Request, r review.Replay) (job review.Job, err error) {
	err = w.call("BeginReplay", func() {
		w.replays = append(w.replays, r)
		if w.job.State != review.JobSucceeded {
			w.job.State = review.JobInProgress
		}
		job = w.job
	})
	return job, err
}

// ResetOf returns a reset by an operator.
func (w *World) ResetOf(context.Context, string, string) (identity, reason string, err error) {
	return "operator", "tested", w.call("ResetOf", nil)
}
