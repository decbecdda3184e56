package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// A RecentReview is one review of a list of them.
type RecentReview struct {
	ReviewRow
	// DeadLetter is the newest of a review that has not succeeded, nil if it has none.
	DeadLetter *LetterName `json:"dead_letter,omitempty"`
	AwaitsSlot bool        `json:"awaits_slot,omitempty"`
	// Stage is that of a review that is not over, as far as its rows tell: one that is
	// begun anew from the first stage still has what the later ones left.
	Stage review.Stage `json:"stage,omitempty"`
}

// A LetterName says which dead letter it is, and of what.
type LetterName struct {
	ID    int64         `json:"id"`
	Stage review.Stage  `json:"stage"`
	Class failure.Class `json:"error_class"`
	State LetterState   `json:"state"`
}

// A ReviewFilter chooses reviews. A zero field but Max chooses all.
type ReviewFilter struct {
	State   review.JobState
	Outcome review.Outcome
	Since   time.Duration // begun within the last
	Max     int
}

// RecentReviews returns the newest reviews that f chooses, the newest first.
func (d *DB) RecentReviews(ctx context.Context, f ReviewFilter) ([]RecentReview, error) {
	rows, err := d.q.RecentJobs(ctx, db.RecentJobsParams{
		State: string(f.State), Outcome: string(f.Outcome), Since: f.Since, LimitTo: int64(f.Max),
	})
	reviews := make([]RecentReview, len(rows))
	for i, r := range rows {
		reviews[i] = RecentReview{ReviewRow: asReviewRow(r.Job), AwaitsSlot: r.AwaitsSlot, Stage: review.Stage(r.Stage)}
		if r.Letter != 0 {
			reviews[i].DeadLetter = &LetterName{r.Letter, review.Stage(r.LetterStage), failure.Class(r.LetterClass), LetterState(r.LetterState)}
		}
	}
	return reviews, interpret("read reviews", err)
}
