package activities

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// shelves keeps the reviews of shelves apart.
type shelves interface {
	// ReserveShelf opens a job under the next free version of the changelist. The
	// same event reserves the same one.
	ReserveShelf(ctx context.Context, serverID string, cl review.Changelist, event, runID string) (review.Request, error)
	// ReviewsOfShelf returns the keys of the reviews of the shelf that are not over.
	ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error)
	// SameAsShelf returns the review of the shelf that a version reads the same as,
	// nil if there is none.
	SameAsShelf(ctx context.Context, cl review.Changelist, v review.Version) (*review.Prior, error)
}

// ShelfParams say what was shelved, and by which event it is known.
type ShelfParams struct {
	ServerID   string            `json:"server_id"`
	Changelist review.Changelist `json:"changelist"`
	Event      string            `json:"event"`
}

// ReserveShelf gives a shelf's review its version.
func (b *Bookkeeping) ReserveShelf(ctx context.Context, p ShelfParams) (review.Request, error) {
	req, err := b.Shelves.ReserveShelf(ctx, p.ServerID, p.Changelist, p.Event, runID(ctx))
	if err != nil {
		return review.Request{}, fmt.Errorf("reserve review of shelf %d: %w", p.Changelist, err)
	}
	return req, nil
}

// ReviewsOfShelf returns the workflows that review what was shelved in a changelist.
func (b *Bookkeeping) ReviewsOfShelf(ctx context.Context, cl review.Changelist) ([]string, error) {
	keys, err := b.Shelves.ReviewsOfShelf(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("look for reviews of shelf %d: %w", cl, err)
	}
	return keys, nil
}

// CompareWithShelf returns the review of the shelf that read the same; nil if that
// read something else.
func (b *Bookkeeping) CompareWithShelf(ctx context.Context, req review.Request) (*review.Prior, error) {
	same, err := b.Shelves.SameAsShelf(ctx, req.Changelist, req.Version)
	if err != nil {
		return nil, fmt.Errorf("compare changelist %d with its shelf: %w", req.Changelist, err)
	}
	return same, nil
}

// Adoption is what a shelf's review has come to. Its report is empty if it has
// expired or cannot be opened any more.
type Adoption struct {
	CritiqueResult
	Spent Spent `json:"spent"`
}

// AdoptReport looks into the report of a shelf's review that is to be that of the
// submit as well. It stays where it is: [Notifying.Notify] puts the submit's name
// on it.
func (n *Notifying) AdoptReport(ctx context.Context, p StageParams) (Adoption, error) {
	report, err := n.report(ctx, p.Request.Changelist, p.Input)
	switch {
	case err == nil:
		return Adoption{CritiqueResult{Report: p.Input, Outcome: report.Outcome, Findings: len(report.Findings)}, spent(ctx)}, nil
	case failure.ClassOf(err).Retryable():
		return Adoption{}, err
	}
	n.Log.InfoContext(ctx, "report of the shelf not adopted", "changelist", int64(p.Request.Changelist), "error", err)
	return Adoption{Spent: spent(ctx)}, nil
}
