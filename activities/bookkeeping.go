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

// jobs stores one row per review. Its methods are those of store.DB, as are those of shelves.
type jobs interface {
	OpenJob(ctx context.Context, req review.Request, runID string) (review.OpenResult, error)
	FinishJob(ctx context.Context, key string, report review.ArtifactRef) (review.Job, error)
	SkipJob(ctx context.Context, key string, by review.SkipRule) (review.Job, error)
	CancelJob(ctx context.Context, key, how string) error
	RecordDeadLetter(ctx context.Context, req review.Request, runID string, deadLetter failure.DeadLetter) (escalated bool, err error)
	BeginReplay(ctx context.Context, req review.Request, r review.Replay) (review.Job, error)
}

// resets knows who reset or canceled a workflow run.
type resets interface {
	// ResetOf returns empty strings if the run's history has no reset.
	ResetOf(ctx context.Context, workflowID, runID string) (identity, reason string, err error)
	// CanceledBy returns who canceled the run, and why, in words.
	CanceledBy(ctx context.Context, workflowID, runID string) (by string, err error)
}

// shelves stores the reviews of shelves.
type shelves interface {
	ReserveShelf(ctx context.Context, serverID string, cl review.Changelist, event, runID string) (review.Request, error)
	ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error)
	SameAsShelf(ctx context.Context, cl review.Changelist, v review.Version) (*review.EarlierReview, error)
}

// OpenJob opens the review's job, unless a review of this version has succeeded or a
// higher version exists. If another run has opened it, a reset to the first workflow task
// made this one.
func (b *Bookkeeper) OpenJob(ctx context.Context, req review.Request) (review.OpenResult, error) {
	opened, err := b.Jobs.OpenJob(ctx, req, runID(ctx))
	if opened.FormerRun != "" {
		opened.Job, err = b.BeginReplay(ctx, ReplayParams{StageParams{Request: req}, opened.FormerRun})
		if opened.Job.State != review.JobInProgress {
			opened.Decision = review.DecisionDuplicate
		}
	}
	opened.Link = strings.ReplaceAll(b.ChangeLink, "{changelist}", req.Changelist.String())
	return opened, failed(req.Changelist, "open job", err)
}

// FinishJob marks the job succeeded; the input is the report.
func (b *Bookkeeper) FinishJob(ctx context.Context, p StageParams) (review.Job, error) {
	job, err := b.Jobs.FinishJob(ctx, p.Request.Key, p.Input)
	return job, failed(p.Request.Changelist, "finish job", err)
}

// SkipParams is the input of [Bookkeeper.SkipJob].
type SkipParams struct {
	StageParams
	SkippedBy review.SkipRule `json:"skipped_by"`
}

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
	StageParams
	DeadLetter failure.DeadLetter `json:"dead_letter"`
}

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
	StageParams
	DeadRunID string `json:"dead_run_id"` // the run that was reset
}

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

// ShelfParams is the input of [Bookkeeper.ReserveShelf].
type ShelfParams struct {
	ServerID   string            `json:"server_id"`
	Changelist review.Changelist `json:"changelist"`
	Event      string            `json:"event"` // identifies the shelve event
}

// ReserveShelf reserves the version of a shelf's review.
func (b *Bookkeeper) ReserveShelf(ctx context.Context, p ShelfParams) (review.Request, error) {
	req, err := b.Shelves.ReserveShelf(ctx, p.ServerID, p.Changelist, p.Event, runID(ctx))
	return req, failed(p.Changelist, "reserve shelf review", err)
}

// ReviewsOfShelf returns the IDs of the workflows that review the shelf.
func (b *Bookkeeper) ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error) {
	keys, err := b.Shelves.ReviewsOfShelf(ctx, cl)
	return keys, failed(cl, "read shelf reviews", err)
}

// CompareWithShelf returns the review of the shelf with the same content; nil if there is
// none.
func (b *Bookkeeper) CompareWithShelf(ctx context.Context, req review.Request) (*review.EarlierReview, error) {
	same, err := b.Shelves.SameAsShelf(ctx, req.Changelist, req.Version)
	return same, failed(req.Changelist, "compare shelf", err)
}

func runID(ctx context.Context) string { return activity.GetInfo(ctx).WorkflowExecution.RunID }

// failed adds the operation and the changelist to err, if it is not nil.
func failed(cl review.Changelist, op string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s of changelist %d: %w", op, cl, err)
}
