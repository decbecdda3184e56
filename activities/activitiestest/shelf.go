package activitiestest

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/criticizer/criticizer/review"
)

// SetShelf makes the change one that was shelved: what is read now is the same as
// what the given review read.
func (w *World) SetShelf(same *review.Prior) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shelf, w.earlier = same, *same
}

// NoteContent fakes what is remembered of shelves.
func (w *World) NoteContent(context.Context, review.Changelist, review.Version, review.Content) (review.Changelist, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("NoteContent"); err != nil || w.shelf == nil {
		return 0, err
	}
	return w.shelf.Changelist, nil
}

// SameAsShelf fakes the comparison with a shelf.
func (w *World) SameAsShelf(context.Context, review.Changelist, review.Version) (*review.Prior, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shelf, w.enter("SameAsShelf")
}

// ReserveShelf gives the n-th call version n.
func (w *World) ReserveShelf(_ context.Context, serverID string, cl review.Changelist, _, _ string) (review.Request, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	err := w.enter("ReserveShelf")
	v := review.Version(w.calls["ReserveShelf"])
	return review.Request{Changelist: cl, Version: v, ServerID: serverID, Key: review.ShelfReviewKey(serverID, cl, v), Shelved: true}, err
}

// ReviewsOfShelf returns the key of the job, if that is of a shelf and not over.
func (w *World) ReviewsOfShelf(context.Context, review.Changelist) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("ReviewsOfShelf"); err != nil || !w.job.Shelved || w.job.State != review.JobInProgress {
		return nil, err
	}
	return []string{w.job.Key}, nil
}

// Keep stores a report as a finished review left it.
func (w *World) Keep(report review.Report) review.ArtifactRef {
	w.mu.Lock()
	defer w.mu.Unlock()
	ref := review.ArtifactRef(fmt.Sprintf("%s:%d", review.NamespaceReport, len(w.blobs)))
	w.blobs[ref], _ = json.Marshal(report) // a report can always be encoded
	return ref
}
