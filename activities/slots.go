package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
)

// inFlight knows the concurrency limits of paths.
type inFlight interface {
	// Of returns the configured patterns that match one of the files.
	Of(files []review.File) []string
	// Patterns returns all configured patterns, in order.
	Patterns() []string
}

// slotNeeds records which slots reviews need. It is idempotent.
type slotNeeds interface {
	RequireSlots(ctx context.Context, cl review.Changelist, v review.Version, patterns []string, byBot bool) error
}

// slots is the concurrency limiter: a review needs one slot of each of its patterns.
type slots interface {
	// AcquireSlots acquires all slots of the review or none; limits holds the number of
	// slots of each pattern. place is 0 if the review has them, else the number of
	// reviews before it. It must be called again within a minute.
	AcquireSlots(ctx context.Context, key string, limits map[string]int) (place int, err error)
}

// noteSlots records which slots the review needs, and returns the positions of their
// limits in the configuration, from 1.
func (f *Fetching) noteSlots(ctx context.Context, req review.Request, change review.Change, byBot bool) (positions []int, err error) {
	if f.InFlight == nil {
		return nil, nil
	}
	patterns := f.InFlight.Of(change.Files)
	if patterns == nil {
		return nil, nil
	}
	for i, pattern := range f.InFlight.Patterns() {
		if slices.Contains(patterns, pattern) {
			positions = append(positions, i+1)
		}
	}
	return positions, f.Slots.RequireSlots(ctx, req.Changelist, req.Version, patterns, byBot)
}

// AcquireSlots returns when the review has its slots. Until then Temporal repeats it: that
// costs no attempt of a stage and adds no event to the history.
func (b *Bookkeeping) AcquireSlots(ctx context.Context, req review.Request) error {
	place, err := b.Slots.AcquireSlots(ctx, req.Key, b.InFlight)
	if err != nil {
		return fmt.Errorf("acquire slots of changelist %d: %w", req.Changelist, err)
	}
	if place > 0 {
		return waiting{fmt.Sprintf("waits for a slot, at place %d (criticizer status %d)", place, req.Changelist), slotDelay(place)}
	}
	return nil
}

// slotDelay is the delay before the next try. It grows with the place, so that a slot is
// not idle for long and a long queue costs little.
func slotDelay(place int) time.Duration { return min(time.Duration(place)*2*time.Second, time.Minute) }

// A waiting is the error of an attempt that must wait and has not failed.
type waiting struct {
	why   string
	delay time.Duration
}

func (w waiting) Error() string { return w.why }

// asTemporal returns a benign error: the SDK does not log or count it as a failure.
func (w waiting) asTemporal() error {
	return temporal.NewApplicationErrorWithOptions(w.why, "NOT_YET", temporal.ApplicationErrorOptions{
		NextRetryDelay: w.delay, Category: temporal.ApplicationErrorCategoryBenign,
	})
}
