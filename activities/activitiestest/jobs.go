package activitiestest

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// OpenJob fakes the dedupe gate for one changelist.
func (w *World) OpenJob(_ context.Context, req review.Request, runID string) (review.Opening, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("OpenJob"); err != nil {
		return review.Opening{}, err
	}
	switch {
	case w.job.Version > req.Version:
		return review.Opening{Verdict: review.VerdictRefused, Job: w.job}, nil
	case w.job.Version == req.Version && w.job.State == review.JobSucceeded:
		return review.Opening{Verdict: review.VerdictDuplicate, Job: w.job}, nil
	}
	w.job = review.Job{ID: 1, Key: req.Key, Changelist: req.Changelist, Version: req.Version, State: review.JobInProgress, RunID: runID, Shelved: req.Shelved}
	return review.Opening{Verdict: review.VerdictRun, Job: w.job}, nil
}

// FinishJob marks the job succeeded.
func (w *World) FinishJob(_ context.Context, _ string, outcome review.Outcome, findings int, report review.ArtifactRef) (review.Job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("FinishJob"); err != nil {
		return review.Job{}, err
	}
	w.job.State, w.job.Outcome, w.job.Findings = review.JobSucceeded, outcome, findings
	w.report = report
	return w.job, nil
}

// SkipJob marks the job succeeded without a review.
func (w *World) SkipJob(_ context.Context, _ string, by review.SkipRule) (review.Job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("SkipJob"); err != nil {
		return review.Job{}, err
	}
	w.job.State, w.job.Outcome, w.job.SkippedBy = review.JobSucceeded, review.OutcomeNotReviewed, by
	return w.job, nil
}

// CancelJob marks the job canceled.
func (w *World) CancelJob(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.job.State = review.JobCanceled
	return w.enter("CancelJob")
}

// RecordDeadLetter stores the run's letter. It is escalated if the run replays
// one of the same class that no retry cures.
func (w *World) RecordDeadLetter(_ context.Context, _ review.Request, runID string, letter failure.DeadLetter) (escalated bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("RecordDeadLetter"); err != nil {
		return false, err
	}
	w.letters[runID], w.job.State = letter, review.JobDeadLettered
	return w.replays != nil && !letter.ErrorClass.Retryable() &&
		w.letters[w.replays[len(w.replays)-1].DeadRunID].ErrorClass == letter.ErrorClass, nil
}

// BeginReplay reopens the job unless it has succeeded.
func (w *World) BeginReplay(_ context.Context, _ review.Request, r review.Replay) (review.Job, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("BeginReplay"); err != nil {
		return review.Job{}, err
	}
	w.replays = append(w.replays, r)
	if w.job.State != review.JobSucceeded {
		w.job.State = review.JobInProgress
	}
	return w.job, nil
}

// ResetOf fakes Temporal's record of a reset.
func (w *World) ResetOf(context.Context, string, string) (identity, reason string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return "operator", "tested", w.enter("ResetOf")
}
