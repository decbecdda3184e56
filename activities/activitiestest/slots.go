package activitiestest

import (
	"context"

	"github.com/criticizer/criticizer/review"
)

// SetSlots makes the change one that needs a slot of each pattern. The review has
// these places, one after another, and then its slots.
func (w *World) SetSlots(patterns []string, places ...int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.patterns, w.places = patterns, places
}

// Of fakes the configured limits.
func (w *World) Of([]review.File) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.patterns
}

// NeedSlots fakes the note of what a review needs.
func (w *World) NeedSlots(context.Context, review.Changelist, review.Version, []string, bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.enter("NeedSlots")
}

// TakeSlots answers with the next place.
func (w *World) TakeSlots(context.Context, string, map[string]int) (place int, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.enter("TakeSlots"); err != nil || len(w.places) == 0 {
		return 0, err
	}
	place, w.places = w.places[0], w.places[1:]
	return place, nil
}

// FreeEnded asks endOf about one workflow.
func (w *World) FreeEnded(ctx context.Context, _ string, endOf func(context.Context, string) (string, error)) (freed int, err error) {
	how, err := endOf(ctx, "another")
	if err != nil || how == "" {
		return 0, err
	}
	return 1, nil
}

// SetEnd says how the workflow that has the slots has ended; empty if it goes on.
func (w *World) SetEnd(how string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end = how
}

// EndOf fakes Temporal's word on a workflow.
func (w *World) EndOf(context.Context, string) (how string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.end, w.enter("EndOf")
}
