package activities

import (
	"context"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// shelves stores the reviews of shelves.
type shelves interface {
	// ReserveShelf opens a job with the next free version of the changelist. The same
	// event gets the same version.
	ReserveShelf(ctx context.Context, serverID string, cl review.Changelist, event, runID string) (review.Request, error)
	// ReviewsOfShelf returns the keys of the shelf's reviews that have not ended.
	ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error)
	// SameAsShelf returns the review of the shelf with the same content as a version;
	// nil if there is none.
	SameAsShelf(ctx context.Context, cl review.Changelist, v review.Version) (*review.EarlierReview, error)
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

// Adoption is the result of a shelf's review. Its report is empty if the report has
// expired or cannot be decrypted.
type Adoption struct {
	LLMResult
	Spent Spent `json:"spent"`
}

// AdoptReport reads the report of a shelf's review, which becomes the submit's report.
// The report is not copied: [Notifier.Notify] puts the submit's changelist into it. It
// returns an error for any report other than the one that the database names for the
// shelf.
func (n *Notifier) AdoptReport(ctx context.Context, p StageParams) (Adoption, error) {
	adopted, err := n.Outbox.AdoptOutcome(ctx, p.Request.Owner(), p.Input)
	if err != nil {
		return Adoption{}, failed(p.Request.Changelist, "adopt outcome", err)
	}
	report, err := n.report(ctx, p.Request.Owner(), p.Input)
	if err == nil && !adopted {
		err = failure.Errorf(failure.ArtifactForeign, "adopt report %s: it is not of the shelf of changelist %d", p.Input, p.Request.Changelist)
	}
	switch {
	case err == nil:
		return Adoption{LLMResult{Report: p.Input, Outcome: report.Outcome, Findings: len(report.Findings), StandIn: report.StandIn}, spent(ctx)}, nil
	case failure.ClassOf(err).Retryable(), failure.ClassOf(err) == failure.ArtifactForeign:
		return Adoption{}, err
	}
	n.Log.InfoContext(ctx, "report of the shelf not adopted", "changelist", int64(p.Request.Changelist), "error", err)
	return Adoption{Spent: spent(ctx)}, nil
}
