package activities

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Bookkeeping serves [QueueBookkeeping]: the job's row, its dead letters and
// their replays, who may go on, and the breakers of the task queues. These activities
// are retried until they succeed.
type Bookkeeping struct {
	Jobs    jobs
	Resets  resets
	Queues  queueLimits
	Search  searchBook
	Shelves shelves
	Slots   slots
	Ends    ends
	// InFlight is how many reviews each pattern of paths admits.
	InFlight map[string]int
}

// jobs keeps one row per review.
type jobs interface {
	OpenJob(ctx context.Context, req review.Request, runID string) (review.Opening, error)
	// FinishJob marks the job succeeded and keeps where its report is. It
	// refuses while a required recipient has not been told
	// (review-notification 6.5).
	FinishJob(ctx context.Context, key string, outcome review.Outcome, findings int, report review.ArtifactRef) (review.Job, error)
	// SkipJob marks the job succeeded without a review.
	SkipJob(ctx context.Context, key string, by review.SkipRule) (review.Job, error)
	CancelJob(ctx context.Context, key string) error
	// RecordDeadLetter stores the letter and marks the job dead-lettered;
	// storing the same run's letter twice is storing it once. It reports
	// whether a replay failed again for the reason it was to repair.
	RecordDeadLetter(ctx context.Context, req review.Request, runID string, letter failure.DeadLetter) (escalated bool, err error)
	// BeginReplay returns the job: as it is if it has succeeded meanwhile, else
	// reopened. Either way it records who replays it and why.
	BeginReplay(ctx context.Context, req review.Request, r review.Replay) (review.Job, error)
}

// resets finds out who reset a workflow run.
type resets interface {
	// ResetOf returns empty strings if the run's history names no reset.
	ResetOf(ctx context.Context, workflowID, runID string) (identity, reason string, err error)
}

// OpenJob is the dedupe gate (review-notification 6.1).
func (b *Bookkeeping) OpenJob(ctx context.Context, req review.Request) (review.Opening, error) {
	opening, err := b.Jobs.OpenJob(ctx, req, runID(ctx))
	if err != nil {
		return review.Opening{}, fmt.Errorf("open job of changelist %d: %w", req.Changelist, err)
	}
	return opening, nil
}

// FinishParams says how a review ended.
type FinishParams struct {
	Request  review.Request `json:"request"`
	Outcome  review.Outcome `json:"outcome"`
	Findings int            `json:"findings"`
	// Report is empty of reviews that were begun before it was kept.
	Report review.ArtifactRef `json:"report,omitempty"`
}

// FinishJob marks the job succeeded (review-notification 6.5).
func (b *Bookkeeping) FinishJob(ctx context.Context, p FinishParams) (review.Job, error) {
	job, err := b.Jobs.FinishJob(ctx, p.Request.Key, p.Outcome, p.Findings, p.Report)
	if err != nil {
		return review.Job{}, fmt.Errorf("finish job of changelist %d: %w", p.Request.Changelist, err)
	}
	return job, nil
}

// SkipParams say why a change is not reviewed.
type SkipParams struct {
	Request   review.Request  `json:"request"`
	SkippedBy review.SkipRule `json:"skipped_by"`
}

// SkipJob ends a review that has nothing to do: nobody is told.
func (b *Bookkeeping) SkipJob(ctx context.Context, p SkipParams) (review.Job, error) {
	job, err := b.Jobs.SkipJob(ctx, p.Request.Key, p.SkippedBy)
	if err != nil {
		return review.Job{}, fmt.Errorf("skip changelist %d: %w", p.Request.Changelist, err)
	}
	return job, nil
}

// CancelJob marks the job canceled.
func (b *Bookkeeping) CancelJob(ctx context.Context, req review.Request) error {
	if err := b.Jobs.CancelJob(ctx, req.Key); err != nil {
		return fmt.Errorf("cancel job of changelist %d: %w", req.Changelist, err)
	}
	return nil
}

// DeadLetterParams names a stage that failed for good.
type DeadLetterParams struct {
	Request review.Request     `json:"request"`
	Letter  failure.DeadLetter `json:"letter"`
}

// Recorded tells under which run a dead letter was recorded. A workflow that
// reads another run's ID here is a reset of that run.
type Recorded struct {
	RunID     string `json:"run_id"`
	Escalated bool   `json:"escalated,omitempty"`
}

// RecordDeadLetter stores the dead letter (criticizer-processing 8.4).
func (b *Bookkeeping) RecordDeadLetter(ctx context.Context, p DeadLetterParams) (Recorded, error) {
	run := runID(ctx)
	escalated, err := b.Jobs.RecordDeadLetter(ctx, p.Request, run, p.Letter)
	if err != nil {
		return Recorded{}, fmt.Errorf("record dead letter of changelist %d: %w", p.Request.Changelist, err)
	}
	activity.GetLogger(ctx).Error("review dead-lettered", "changelist", p.Request.Changelist, "review_version", p.Request.Version,
		"stage", p.Letter.Stage, "error_class", p.Letter.ErrorClass, "escalated", escalated)
	return Recorded{RunID: run, Escalated: escalated}, nil
}

// ReplayParams names the dead run this run repairs.
type ReplayParams struct {
	Request   review.Request `json:"request"`
	DeadRunID string         `json:"dead_run_id"`
}

// BeginReplay leaves a trace of who replays and why. A job that comes back
// succeeded was repaired meanwhile: the replay has nothing to do
// (criticizer-processing 8.5).
func (b *Bookkeeping) BeginReplay(ctx context.Context, p ReplayParams) (review.Job, error) {
	run := runID(ctx)
	identity, reason, err := b.Resets.ResetOf(ctx, p.Request.Key, run)
	if err != nil {
		return review.Job{}, fmt.Errorf("find who reset changelist %d: %w", p.Request.Changelist, err)
	}
	job, err := b.Jobs.BeginReplay(ctx, p.Request, review.Replay{
		DeadRunID: p.DeadRunID, NewRunID: run, Identity: identity, Reason: reason,
	})
	if err != nil {
		return review.Job{}, fmt.Errorf("begin replay of changelist %d: %w", p.Request.Changelist, err)
	}
	return job, nil
}

func runID(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }
