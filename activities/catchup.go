package activities

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// searchOverlap is the number of changelist numbers below its mark that a search reads
// again: a replica that lags can know a changelist before it knows a lower one.
const searchOverlap = 200

// searchMarks stores how far the search for changelists without a review has come. Its methods
// are those of store.DB.
type searchMarks interface {
	CatchUpMark(ctx context.Context, serverID string) (since, mark review.Changelist, known bool, err error)
	RaiseCatchUpMark(ctx context.Context, serverID string, mark review.Changelist) error
	WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error)
}

// submits lists submitted changelists.
type submits interface {
	Newest(ctx context.Context) (review.Changelist, error)
	// Submitted lists the changelists above after, up to the number upTo. If the server
	// has none, upTo is after.
	Submitted(ctx context.Context, after review.Changelist) (list []review.Changelist, upTo review.Changelist, err error)
}

// A SearchStart is where a search continues. The first search of a server begins with the
// next submit.
type SearchStart struct {
	First bool              `json:"first,omitempty"`
	After review.Changelist `json:"after"`
}

// FindMark returns where the search of a server continues.
func (b *Bookkeeper) FindMark(ctx context.Context, serverID string) (SearchStart, error) {
	since, mark, known, err := b.Search.CatchUpMark(ctx, serverID)
	return SearchStart{First: !known, After: max(since, mark-searchOverlap)}, err
}

// A Listing is the submitted changelists of a range.
type Listing struct {
	Changelists []review.Changelist `json:"changelists,omitempty"`
	UpTo        review.Changelist   `json:"up_to"`
}

// ListSubmitted lists the next changelists of a search.
func (f *Fetcher) ListSubmitted(ctx context.Context, from SearchStart) (found Listing, err error) {
	if from.First {
		found.UpTo, err = f.Submits.Newest(ctx)
	} else {
		found.Changelists, found.UpTo, err = f.Submits.Submitted(ctx, from.After)
	}
	if failure.ClassOf(err) == failure.TooLarge {
		countProblems(ctx, "catch_up", 1)
	}
	if err != nil {
		return found, fmt.Errorf("list changelists after %d: %w", from.After, err)
	}
	countProblems(ctx, "catch_up", 0)
	return found, nil
}

// WithoutReview returns the changelists that have no review.
func (b *Bookkeeper) WithoutReview(ctx context.Context, cls []review.Changelist) ([]review.Changelist, error) {
	return b.Search.WithoutReview(ctx, cls)
}

// MarkParams is the input of [Bookkeeper.RaiseMark].
type MarkParams struct {
	ServerID string            `json:"server_id"`
	UpTo     review.Changelist `json:"up_to"`
}

// RaiseMark stores how far a search has come.
func (b *Bookkeeper) RaiseMark(ctx context.Context, p MarkParams) error {
	return b.Search.RaiseCatchUpMark(ctx, p.ServerID, p.UpTo)
}
