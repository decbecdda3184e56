package activities

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/review"
)

// overlap is how many numbers below its mark a search looks at again: a server
// that lags may have known of a changelist and not yet of one before it.
const overlap = 200

// searchBook keeps how far the search for changelists without a review has come.
type searchBook interface {
	CatchUpMark(ctx context.Context, serverID string) (since, mark review.Changelist, known bool, err error)
	// RaiseCatchUpMark never lowers it.
	RaiseCatchUpMark(ctx context.Context, serverID string, mark review.Changelist) error
	WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error)
}

// submits lists submitted changelists.
type submits interface {
	Newest(ctx context.Context) (review.Changelist, error)
	// Submitted looks at some numbers above after, up to upTo; that is after
	// itself if there are none.
	Submitted(ctx context.Context, after review.Changelist) (list []review.Changelist, upTo review.Changelist, err error)
}

// A SearchStart is where a search goes on. The first one ever begins with what is
// submitted from now on.
type SearchStart struct {
	First bool              `json:"first,omitempty"`
	After review.Changelist `json:"after"`
}

// FindMark reads where the search of a server goes on.
func (b *Bookkeeping) FindMark(ctx context.Context, serverID string) (SearchStart, error) {
	since, mark, known, err := b.Search.CatchUpMark(ctx, serverID)
	return SearchStart{First: !known, After: max(since, mark-overlap)}, err
}

// A Listing is some of the submitted changelists, up to a number.
type Listing struct {
	Changelists []review.Changelist `json:"changelists,omitempty"`
	UpTo        review.Changelist   `json:"up_to"`
}

// ListSubmitted lists some changelists after the start of a search.
func (f *Fetching) ListSubmitted(ctx context.Context, from SearchStart) (found Listing, err error) {
	if from.First {
		found.UpTo, err = f.Submits.Newest(ctx)
	} else {
		found.Changelists, found.UpTo, err = f.Submits.Submitted(ctx, from.After)
	}
	if err != nil {
		return found, fmt.Errorf("list changelists after %d: %w", from.After, err)
	}
	return found, nil
}

// WithoutReview returns those of the changelists that no review was opened for.
func (b *Bookkeeping) WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error) {
	return b.Search.WithoutReview(ctx, cls)
}

// MarkParams say how far a search has come.
type MarkParams struct {
	ServerID string            `json:"server_id"`
	UpTo     review.Changelist `json:"up_to"`
}

// RaiseMark notes how far a search has come.
func (b *Bookkeeping) RaiseMark(ctx context.Context, p MarkParams) error {
	return b.Search.RaiseCatchUpMark(ctx, p.ServerID, p.UpTo)
}
