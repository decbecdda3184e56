package activitiestest

import (
	"context"
	"slices"

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
		case w.job.Key == req.Key && w.job.Version == req.Version:
			opening.Verdict = review.VerdictRun
		default:
			opening.Verdict = review.VerdictRun
			w.ended[w.job.Key] = w.job.State != review.JobInProgress
			w.job = review.Job{ID: 1, Key: req.Key, Changelist: req.Changelist, Version: req.Version, State: review.JobInProgress, RunID: runID, Shelved: req.Shelved}
		}
		if opening.Job = w.job; w.job.Key == req.Key && w.job.RunID != runID {
			opening.FormerRun = w.job.RunID
		}
	})
	return opening, err
}

// FinishJob marks the job succeeded, if every recipient was notified or waived.
func (w *World) FinishJob(_ context.Context, _ string, outcome review.Outcome, findings int, report review.ArtifactRef) (job review.Job, err error) {
	refused := false
	err = w.call("FinishJob", func() {
		isOpen := func(row review.Delivery) bool { return row.NotifiedAt == nil && row.Status != review.DeliveryWaived }
		if w.job.State != review.JobSucceeded {
			if refused = slices.ContainsFunc(w.rows, isOpen); refused {
				return
			}
			w.job.State, w.job.Outcome, w.job.Findings, w.report = review.JobSucceeded, outcome, findings, report
		}
		job = w.job
	})
	if refused {
		err = failure.Errorf(failure.InvariantViolated, "finish job: a delivery is neither notified nor waived")
	}
	return job, err
}

// SkipJob marks the job succeeded without a review.
func (w *World) SkipJob(_ context.Context, _ string, by review.SkipRule) (job review.Job, err error) {
	err = w.call("SkipJob", func() {
		if w.job.State != review.JobSucceeded {
			w.job.State, w.job.Outcome, w.job.SkippedBy = review.JobSucceeded, review.OutcomeNotReviewed, by
		}
		job = w.job
	})
	return job, err
}

// CancelJob marks a running job canceled.
func (w *World) CancelJob(context.Context, string) error {
	return w.call("CancelJob", func() {
		if w.job.State == review.JobInProgress {
			w.job.State = review.JobCanceled
		}
	})
}

// RecordDeadLetter stores the run's letter. It is escalated if the run replays a letter of
// the same non-retryable class.
func (w *World) RecordDeadLetter(_ context.Context, _ review.Request, runID string, letter failure.DeadLetter) (escalated bool, err error) {
	err = w.call("RecordDeadLetter", func() {
		if w.job.State != review.JobSucceeded {
			w.job.State = review.JobDeadLettered
		}
		w.letters[runID] = letter
		escalated = w.job.State != review.JobSucceeded && w.replays != nil && !letter.ErrorClass.Retryable() &&
			w.letters[w.replays[len(w.replays)-1].DeadRunID].ErrorClass == letter.ErrorClass
	})
	return escalated, err
}

// BeginReplay reopens the job unless it has succeeded.
func (w *World) BeginReplay(_ context.Context, _ review.Request, r review.Replay) (job review.Job, err error) {
	err = w.call("BeginReplay", func() {
		if w.job.RunID != r.NewRunID {
			w.replays = append(w.replays, r)
			if w.job.State != review.JobSucceeded {
				w.job.State, w.job.RunID = review.JobInProgress, r.NewRunID
			}
		}
		job = w.job
	})
	return job, err
}

// ResetOf returns a reset by an operator.
func (w *World) ResetOf(context.Context, string, string) (identity, reason string, err error) {
	return "operator", "tested", w.call("ResetOf", nil)
}
