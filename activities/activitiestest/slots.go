package activitiestest

import (
	"context"

	"github.com/criticizer/criticizer/review"
)

// SetSlots makes the change need a slot of each pattern. The first calls of AcquireSlots, as
// many as denials, do not acquire them.
func (w *World) SetSlots(patterns []string, denials int) {
	w.set(func() { w.patterns, w.denials = patterns, denials })
}

// Of returns the patterns of [World.SetSlots].
func (w *World) Of([]review.File) []string { return get(w, func() []string { return w.patterns }) }

// Patterns returns the patterns of [World.SetSlots].
func (w *World) Patterns() []string { return w.Of(nil) }

// RequireSlots does nothing.
func (w *World) RequireSlots(context.Context, review.Changelist, review.Version, []string, bool) error {
	return w.call("RequireSlots", nil)
}

// AcquireSlots reports whether the review has its slots.
func (w *World) AcquireSlots(context.Context, string, map[string]int) (acquired bool, err error) {
	err = w.call("AcquireSlots", func() {
		acquired = w.denials == 0
		w.denials = max(0, w.denials-1)
	})
	return acquired, err
}

// PassOnSlots wakes no review.
func (w *World) PassOnSlots(context.Context, string, map[string]int, func(context.Context, string, string) error) error {
	return w.call("PassOnSlots", nil)
}
