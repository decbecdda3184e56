package activitiestest

import (
	"context"

	"github.com/criticizer/criticizer/review"
)

// SetSlots makes the change need a slot of each pattern. The first calls of AcquireSlots return
// these places, the next ones 0.
func (w *World) SetSlots(patterns []string, places ...int) {
	w.set(func() { w.patterns, w.places = patterns, places })
}

// Of returns the patterns of [World.SetSlots].
func (w *World) Of([]review.File) []string { return get(w, func() []string { return w.patterns }) }

// Patterns returns the patterns of [World.SetSlots].
func (w *World) Patterns() []string { return w.Of(nil) }

// RequireSlots does nothing.
func (w *World) RequireSlots(context.Context, review.Changelist, review.Version, []string, bool) error {
	return w.call("RequireSlots", nil)
}

// AcquireSlots returns the next place.
func (w *World) AcquireSlots(context.Context, string, map[string]int) (place int, err error) {
	err = w.call("AcquireSlots", func() {
		if len(w.places) > 0 {
			place, w.places = w.places[0], w.places[1:]
		}
	})
	return place, err
}
