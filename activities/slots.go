package activities

import (
	"context"
	"fmt"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"
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
	// slots of each pattern. A review without its slots waits for them.
	AcquireSlots(ctx context.Context, key string, limits map[string]int) (acquired bool, err error)
	// PassOnSlots gives the slots that a review has released to those next in line, and
	// wakes each.
	PassOnSlots(ctx context.Context, key string, limits map[string]int, wake func(ctx context.Context, workflowID, runID string) error) error
}

// waker makes a review that waits for its slots call [Bookkeeping.AcquireSlots] again.
type waker interface {
	WakeForSlots(ctx context.Context, workflowID, runID string) error
}

// recordSlotNeeds records which slots the review needs, and returns the positions of their
// limits in the configuration, from 1.
func (f *Fetching) recordSlotNeeds(ctx context.Context, req review.Request, change review.Change, byBot bool) (positions []int, err error) {
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

// SlotsActivity is the ID of the activity [Bookkeeping.AcquireSlots]. It is wire format.
const SlotsActivity = "acquire-slots"

// slotsDelay is the delay before the next try of a review that is not woken.
const slotsDelay = time.Hour

// AcquireSlots returns when the review has its slots. Until then Temporal repeats it, when
// the review is woken: that costs no attempt of a stage and adds no event to the history.
func (b *Bookkeeping) AcquireSlots(ctx context.Context, req review.Request) error {
	acquired, err := b.Slots.AcquireSlots(ctx, req.Key, b.InFlight)
	if err != nil {
		return fmt.Errorf("acquire slots of changelist %d: %w", req.Changelist, err)
	}
	if !acquired {
		// A benign error: the SDK does not log or count it as a failure.
		return temporal.NewApplicationErrorWithOptions(fmt.Sprintf("waits for a slot (criticizer status %d)", req.Changelist), "NOT_YET",
			temporal.ApplicationErrorOptions{NextRetryDelay: slotsDelay, Category: temporal.ApplicationErrorCategoryBenign})
	}
	return nil
}

// passOnSlots passes on the slots of a review that may have released them. If that fails, the
// workers do it with all free slots within seconds.
func (b *Bookkeeping) passOnSlots(ctx context.Context, req review.Request) {
	if len(b.InFlight) == 0 {
		return
	}
	if err := b.Slots.PassOnSlots(ctx, req.Key, b.InFlight, b.Waker.WakeForSlots); err != nil {
		activity.GetLogger(ctx).Warn("slots not passed on", "changelist", req.Changelist, "error", err)
	}
}
