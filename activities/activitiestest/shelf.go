package activitiestest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/criticizer/criticizer/review"
)

// SetShelf makes the change a shelf, or the submit of one, with the same content as an
// earlier review. Without it, no other review has the content.
func (w *World) SetShelf(same *review.Prior) { w.set(func() { w.shelf, w.earlier = same, *same }) }

// RecordContent returns the shelf of [World.SetShelf].
func (w *World) RecordContent(context.Context, review.Changelist, review.Version, review.Content) (shelf review.Changelist, err error) {
	err = w.call("RecordContent", func() {
		if w.shelf != nil {
			shelf = w.shelf.Changelist
		}
	})
	return shelf, err
}

// SameAsShelf returns the review of [World.SetShelf].
func (w *World) SameAsShelf(context.Context, review.Changelist, review.Version) (same *review.Prior, err error) {
	err = w.call("SameAsShelf", func() { same = w.shelf })
	return same, err
}

// ReserveShelf gives the n-th event version n.
func (w *World) ReserveShelf(_ context.Context, serverID string, cl review.Changelist, event, _ string) (req review.Request, err error) {
	err = w.call("ReserveShelf", func() {
		i := slices.Index(w.events, event)
		if i < 0 {
			i = len(w.events)
			v := review.Version(i + 1)
			w.events = append(w.events, event)
			w.reserved = append(w.reserved, review.Request{Changelist: cl, Version: v, ServerID: serverID, Key: review.ShelfReviewKey(serverID, cl, v), Shelved: true})
		}
		req = w.reserved[i]
	})
	return req, err
}

// ReviewsOfShelf returns the keys of the reserved reviews that have not ended.
func (w *World) ReviewsOfShelf(context.Context, review.Changelist) (keys []string, err error) {
	err = w.call("ReviewsOfShelf", func() {
		for _, r := range w.reserved {
			if !w.ended[r.Key] && (r.Key != w.job.Key || w.job.State == review.JobInProgress) {
				keys = append(keys, r.Key)
			}
		}
	})
	return keys, err
}

// Keep stores the report of a finished review.
func (w *World) Keep(report review.Report) review.ArtifactRef {
	return get(w, func() review.ArtifactRef {
		ref := review.ArtifactRef(fmt.Sprintf("%s:%d", review.NamespaceReport, len(w.blobs)))
		w.blobs[ref], _ = json.Marshal(report) // never fails
		w.owners[ref] = report.Owner()
		return ref
	})
}

// ReportOwner returns the review of [World.SetShelf], if the report is its own, else of.
func (w *World) ReportOwner(_ context.Context, of review.Owner, report review.ArtifactRef) (owner review.Owner, err error) {
	err = w.call("ReportOwner", func() {
		if owner = of; w.shelf != nil && w.shelf.Report == report {
			owner = review.Owner{Changelist: w.shelf.Changelist, Version: w.shelf.Version}
		}
	})
	return owner, err
}
