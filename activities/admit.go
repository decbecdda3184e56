package activities

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
)

// inFlight knows which limits on reviews in flight a change comes under.
type inFlight interface {
	// Of returns the patterns of the configuration that match one of the files.
	Of(files []review.File) []string
}

// slotNeeds keeps which slots reviews need. Noting twice is noting once.
type slotNeeds interface {
	NeedSlots(ctx context.Context, cl review.Changelist, v review.Version, patterns []string, byBot bool) error
}

// slots gives reviews the slots that they need.
type slots interface {
	// TakeSlots gives a review all of them or none; limits says how many each pattern
	// has. place is 0 if it has them, else how many reviews must end before it gets
	// them. It must ask again within a minute.
	TakeSlots(ctx context.Context, key string, limits map[string]int) (place int, err error)
	// FreeEnded takes the slots that a review waits for from those that have ended
	// without a word.
	FreeEnded(ctx context.Context, key string, endOf func(ctx context.Context, workflowID string) (how string, err error)) (freed int, err error)
}

// ends knows how the current run of a workflow has ended; how is empty if it goes on.
type ends interface {
	EndOf(ctx context.Context, workflowID string) (how string, err error)
}

// noteSlots notes which slots the review of a change needs, and reports whether it
// needs any.
func (f *Fetching) noteSlots(ctx context.Context, req review.Request, change review.Change, byBot bool) (bool, error) {
	if f.InFlight == nil {
		return false, nil
	}
	patterns := f.InFlight.Of(change.Files)
	if patterns == nil {
		return false, nil
	}
	return true, f.Slots.NeedSlots(ctx, req.Changelist, req.Version, patterns, byBot)
}

// Admit ends when the review has the slots that it needs. While it has not it is
// tried again, which costs no attempt of a stage and leaves no event in the history.
func (b *Bookkeeping) Admit(ctx context.Context, req review.Request) error {
	place, err := b.Slots.TakeSlots(ctx, req.Key, b.InFlight)
	if err == nil && place > 0 && b.freeEnded(ctx, req) {
		place, err = b.Slots.TakeSlots(ctx, req.Key, b.InFlight)
	}
	if err != nil {
		return fmt.Errorf("admit changelist %d: %w", req.Changelist, err)
	}
	if place > 0 {
		return notYet{why: fmt.Sprintf("waits for a slot, at place %d (criticizer status %d)", place, req.Changelist), again: askForSlots(place)}
	}
	return nil
}

// freeEnded reports whether a slot has become free. That nobody could be asked only
// means to go on waiting.
func (b *Bookkeeping) freeEnded(ctx context.Context, req review.Request) bool {
	freed, err := b.Slots.FreeEnded(ctx, req.Key, b.Ends.EndOf)
	if err != nil {
		activity.GetLogger(ctx).Warn("reviews that have slots could not be looked at", "changelist", int64(req.Changelist), "error", err)
	}
	return freed > 0
}

// askForSlots is when a review asks again: the sooner, the nearer it is, so that a
// slot is not left empty for long and a long queue costs little.
func askForSlots(place int) time.Duration {
	return min(time.Duration(place)*2*time.Second, time.Minute)
}

// A notYet is the error of an attempt that has not failed: what it asks for is not to
// be had yet.
type notYet struct {
	why   string
	again time.Duration
}

func (n notYet) Error() string { return n.why }

// asTemporal is not logged or counted as a failure by the SDK.
func (n notYet) asTemporal() error {
	return temporal.NewApplicationErrorWithOptions(n.why, "NOT_YET", temporal.ApplicationErrorOptions{
		NextRetryDelay: n.again, Category: temporal.ApplicationErrorCategoryBenign,
	})
}
