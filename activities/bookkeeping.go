package activities

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/sdk/activity"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Bookkeeper serves contract.QueueBookkeeping: jobs, dead letters and replays. Its activities are retried until they succeed.
type Bookkeeper struct {
	Jobs    jobs
	Resets  resets
	Search  searchMarks
	Shelves shelves
	// ChangeLink is the URL of a change with {changelist} in it. Default: none.
	ChangeLink string
}

// jobs stores one row per review.
type jobs interface {
	OpenJob(ctx context.Context, req review.Request, runID string) (review.OpenResult, error)
	// FinishJob marks the job succeeded with the outcome that stage llm recorded for its
	// report. It fails if a required recipient is not notified (notification 6.5).
	FinishJob(ctx context.Context, key string, report review.ArtifactRef) (review.Job, error)
	// SkipJob marks the job succeeded without a review, by a rule that stage fetch recorded.
	SkipJob(ctx context.Context, key string, by review.SkipRule) (review.Job, error)
	CancelJob(ctx context.Context, key, how string) error
	// RecordDeadLetter stores the deadLetter and marks the job dead-lettered. It is
	// idempotent per run. It reports whether a replay failed again for the same reason.
	RecordDeadLetter(ctx context.Context, req review.Request, runID string, deadLetter failure.DeadLetter) (escalated bool, err error)
	// BeginReplay records the replay and returns the job: unchanged if it has
	// succeeded meanwhile, canceled if a newer version has, else reopened.
	BeginReplay(ctx context.Context, req review.Request, r review.Replay) (review.Job, error)
}

// resets knows who reset or canceled a workflow run.
type resets interface {
	// ResetOf returns empty strings if the run's history has no reset.
	ResetOf(ctx context.Context, workflowID, runID string) (identity, reason string, err error)
	// CanceledBy returns who canceled the run, and why, in words.
	CanceledBy(ctx context.Context, workflowID, runID string) (by string, err error)
}

// OpenJob opens the review's job, unless a review of this version has succeeded or a
// higher version exists. If another run has opened it, a reset to the first workflow task
// made this one.
func (b *Bookkeeper) OpenJob(ctx context.Context, req review.Request) (review.OpenResult, error) {
	opened, err := b.Jobs.OpenJob(ctx, req, runID(ctx))
	if opened.FormerRun != "" {
		opened.Job, err = b.BeginReplay(ctx, ReplayParams{Request: req, DeadRunID: opened.FormerRun})
		if opened.Job.State != review.JobInProgress {
			opened.Decision = review.DecisionDuplicate
		}
	}
	opened.Link = strings.ReplaceAll(b.ChangeLink, "{changelist}", req.Changelist.String())
	return opened, failed(req.Changelist, "open job", err)
}

// FinishParams is the input of [Bookkeeper.FinishJob].
type FinishParams struct {
	Request review.Request     `json:"request"`
	Report  review.ArtifactRef `json:"report"`
}

func (p FinishParams) request() review.Request { return p.Request }

// FinishJob marks the job succeeded.
func (b *Bookkeeper) FinishJob(ctx context.Context, p FinishParams) (review.Job, error) {
	job, err := b.Jobs.FinishJob(ctx, p.Request.Key, p.Report)
	return job, failed(p.Request.Changelist, "finish job", err)
}

// SkipParams is the input of [Bookkeeper.SkipJob].
type SkipParams struct {
	Request   review.Request  `json:"request"`
	SkippedBy review.SkipRule `json:"skipped_by"`
}

func (p SkipParams) request() review.Request { return p.Request }

// SkipJob ends a review without findings and without notifications.
func (b *Bookkeeper) SkipJob(ctx context.Context, p SkipParams) (review.Job, error) {
	job, err := b.Jobs.SkipJob(ctx, p.Request.Key, p.SkippedBy)
	return job, failed(p.Request.Changelist, "skip job", err)
}

// CancelJob marks the job canceled, and records by whom.
func (b *Bookkeeper) CancelJob(ctx context.Context, req review.Request) error {
	by, err := b.Resets.CanceledBy(ctx, req.Key, runID(ctx))
	if err == nil {
		err = b.Jobs.CancelJob(ctx, req.Key, "canceled "+by)
	}
	return failed(req.Changelist, "cancel job", err)
}

// DeadLetterParams is the input of [Bookkeeper.RecordDeadLetter].
type DeadLetterParams struct {
	Request    review.Request     `json:"request"`
	DeadLetter failure.DeadLetter `json:"dead_letter"`
}

func (p DeadLetterParams) request() review.Request { return p.Request }

// Recorded names the run that recorded a dead letter. A workflow that reads the ID of
// another run here is a reset of that run.
type Recorded struct {
	RunID     string `json:"run_id"`
	Escalated bool   `json:"escalated,omitempty"`
}

// RecordDeadLetter stores the dead letter.
func (b *Bookkeeper) RecordDeadLetter(ctx context.Context, p DeadLetterParams) (Recorded, error) {
	run := runID(ctx)
	escalated, err := b.Jobs.RecordDeadLetter(ctx, p.Request, run, p.DeadLetter)
	if err != nil {
		return Recorded{}, failed(p.Request.Changelist, "record dead letter", err)
	}
	activity.GetLogger(ctx).Error("review dead-lettered", "changelist", p.Request.Changelist, "review_version", p.Request.Version,
		"stage", p.DeadLetter.Stage, "error_class", p.DeadLetter.ErrorClass, "escalated", escalated)
	return Recorded{RunID: run, Escalated: escalated}, nil
}

// ReplayParams is the input of [Bookkeeper.BeginReplay].
type ReplayParams struct {
	Request   review.Request `json:"request"`
	DeadRunID string         `json:"dead_run_id"` // the run that was reset
}

func (p ReplayParams) request() review.Request { return p.Request }

// BeginReplay assigns the job to this run and stores the replay record: who reset the
// former run, and why. If the returned job is not in progress, there is nothing to
// repeat.
func (b *Bookkeeper) BeginReplay(ctx context.Context, p ReplayParams) (review.Job, error) {
	run := runID(ctx)
	identity, reason, err := b.Resets.ResetOf(ctx, p.Request.Key, run)
	if err != nil {
		return review.Job{}, failed(p.Request.Changelist, "read reset", err)
	}
	job, err := b.Jobs.BeginReplay(ctx, p.Request, review.Replay{
		DeadRunID: p.DeadRunID, NewRunID: run, Identity: identity, Reason: reason,
	})
	return job, failed(p.Request.Changelist, "begin replay", err)
}

func runID(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// failed adds the operation and the changelist to err, if it is not nil.
func failed(cl review.Changelist, op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of changelist %d: %w", op, cl, err)
}
