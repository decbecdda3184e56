package store

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// A ReviewRow is a review as an operator sees it: the job with its times.
type ReviewRow struct {
	review.Job
	ServerID   string     `json:"-"`
	CreatedAt  time.Time  `json:"created_at"`
	UpdatedAt  time.Time  `json:"updated_at"`
	FinishedAt *time.Time `json:"finished_at,omitempty"`
	// StandIn is set if a simulation has answered in place of a model: no model has read
	// the change, with any outcome.
	StandIn bool `json:"stand_in,omitempty"`
	// ClosedHow says who ended the run of a canceled review, or forgot the review, and why.
	ClosedHow string `json:"closed_how,omitempty"`
	// Tally counts the files that were not read, by reason; zero without a report.
	Tally review.Tally `json:"tally,omitzero"`
}

func asReviewRow(j db.Job, standIn bool) ReviewRow {
	return ReviewRow{Job: asJob(j), ServerID: j.ServerID, CreatedAt: j.CreatedAt, UpdatedAt: j.UpdatedAt, FinishedAt: j.FinishedAt, StandIn: standIn, ClosedHow: postgres.OrZero(j.ClosedHow)}
}

// Reviews returns the reviews of a changelist, by version.
func (d *DB) Reviews(ctx context.Context, cl review.Changelist) ([]ReviewRow, error) {
	jobs, err := d.JobsOfChangelist(ctx, cl)
	rows := make([]ReviewRow, len(jobs))
	for i, j := range jobs {
		rows[i] = asReviewRow(j.Job, j.StandIn)
		err = errors.Join(err, json.Unmarshal(j.Tally, &rows[i].Tally))
	}
	return rows, err
}

// ReportOf returns the reference of the report of a review; for version 0, of the
// newest version that has one. The error has class NOT_FOUND if there is none.
func (d *DB) ReportOf(ctx context.Context, cl review.Changelist, v review.Version) (review.ArtifactRef, error) {
	jobs, err := d.JobsOfChangelist(ctx, cl)
	if err != nil {
		return "", err
	}
	for _, j := range slices.Backward(jobs) {
		if j.Job.Report != nil && (v == 0 || j.Job.Version == v) {
			return *j.Job.Report, nil
		}
	}
	return "", failure.Errorf(failure.NotFound, "changelist %d has no such review with a report", cl)
}

// ReportOfReview returns the reference of the report of a review, empty if it has none.
func (d *DB) ReportOfReview(ctx context.Context, of review.Owner) (review.ArtifactRef, error) {
	ref, err := d.Queries.ReportOfReview(ctx, of.Changelist, of.Version)
	return review.ArtifactRef(ref), err
}

// A RecentReview is one review of a list.
type RecentReview struct {
	ReviewRow
	// DeadLetter is the newest dead letter of a review that has not succeeded.
	DeadLetter *LetterName `json:"dead_letter,omitempty"`
	// Stage is the stage of an unfinished review, derived from its rows. A review that
	// was restarted from the first stage has the rows of later stages.
	Stage review.Stage `json:"stage,omitempty"`
}

// A LetterName identifies a dead letter.
type LetterName struct {
	ID    int64           `json:"id"`
	Stage review.Stage    `json:"stage"`
	Class failure.Class   `json:"error_class"`
	State DeadLetterState `json:"state"`
}

// A ReviewFilter selects reviews. A zero field selects all, except Max.
type ReviewFilter struct {
	State   review.JobState
	Outcome review.Outcome
	Since   time.Duration // how long ago a review may have begun
	Max     int
}

// RecentReviews returns the reviews that f selects, newest first.
func (d *DB) RecentReviews(ctx context.Context, f ReviewFilter) ([]RecentReview, error) {
	rows, err := d.RecentJobs(ctx, db.RecentJobsParams{
		State: string(f.State), Outcome: string(f.Outcome), Since: f.Since, LimitTo: int64(f.Max),
	})
	return convert(rows, err, func(r db.RecentJobsRow) RecentReview {
		found := RecentReview{ReviewRow: asReviewRow(r.Job, r.StandIn), Stage: review.Stage(r.Stage)}
		if r.Letter != 0 {
			found.DeadLetter = &LetterName{r.Letter, review.Stage(r.LetterStage), failure.Class(r.LetterClass), DeadLetterState(r.LetterState)}
		}
		return found
	})
}

// EarlierReport returns the last review of the changelist, or of its shelf, that had
// succeeded when version v was opened. It is zero if there is none; its report may be
// empty (notification 10.4).
func (d *DB) EarlierReport(ctx context.Context, cl review.Changelist, v review.Version) (review.EarlierReview, error) {
	row, err := d.Queries.EarlierReport(ctx, cl, v)
	if postgres.NoRow(err) {
		return review.EarlierReview{}, nil
	}
	return review.EarlierReview{
		Changelist: row.Changelist, Version: row.Version, Report: postgres.OrZero(row.Report), Until: row.BegunAt,
	}, err
}

// CatchUpMark returns how far the search for changelists without a review has come
// on a Perforce server: every changelist after since and up to mark was checked. known
// is false if the search never ran.
func (d *DB) CatchUpMark(ctx context.Context, serverID string) (since, mark review.Changelist, known bool, err error) {
	row, err := d.Queries.CatchUpMark(ctx, serverID)
	if postgres.NoRow(err) {
		return 0, 0, false, nil
	}
	return row.Since, row.Mark, err == nil, err
}

// WithoutReview returns the changelists of cls that have no review, in ascending
// order.
func (d *DB) WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error) {
	found, err := d.ChangelistsWithoutReview(ctx, numbers(cls))
	return convert(found, err, func(n int64) review.Changelist { return review.Changelist(n) })
}
