package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// CatchUpSchedule is the ID of the schedule that runs [CatchUp]. It is wire format.
const CatchUpSchedule = "criticizer-catch-up"

// The limits of one run; the next run continues.
const (
	catchUpRounds = 20
	catchUpStarts = 500
)

// CaughtUp is the result of a run of [CatchUp].
type CaughtUp struct {
	Started int               `json:"started"`
	UpTo    review.Changelist `json:"up_to"`
}

// CatchUp starts the review of each changelist that was submitted since the last run and
// has no review: the trigger did not run, or Temporal was down for longer than the
// trigger's spool lasts. It raises the mark after each listing. If a trigger starts the same
// review concurrently, Temporal rejects one of the two.
func CatchUp(ctx workflow.Context, serverID string) (CaughtUp, error) {
	var from activities.SearchStart
	if err := book(ctx, "find-mark", bookkeeper.FindMark, serverID, &from); err != nil {
		return CaughtUp{}, err
	}
	done := CaughtUp{UpTo: from.After}
	for round := 1; round <= catchUpRounds && done.Started < catchUpStarts; round++ {
		var found activities.Listing
		err := searchPolicy.execute(ctx, fmt.Sprintf("list-%d", round), &activities.Spent{}, &found, fetcher.ListSubmitted, from)
		if err != nil || found.UpTo <= from.After && !from.First {
			return done, err
		}
		var missing []review.Changelist
		if len(found.Changelists) > 0 {
			if err := book(ctx, fmt.Sprintf("compare-%d", round), bookkeeper.WithoutReview, found.Changelists, &missing); err != nil {
				return done, err
			}
		}
		for _, cl := range missing {
			if err := startChild(ctx, review.Request{Changelist: cl, Version: 1, ServerID: serverID, Key: review.DefaultKey(serverID, cl, 1)}); err != nil {
				return done, err
			}
			done.Started++
		}
		mark := activities.MarkParams{ServerID: serverID, UpTo: found.UpTo}
		if err := book(ctx, fmt.Sprintf("raise-%d", round), bookkeeper.RaiseMark, mark, nil); err != nil {
			return done, err
		}
		done.UpTo = found.UpTo
		workflow.SetCurrentDetails(ctx, fmt.Sprintf("Reviews started: %d, searched up to changelist %d", done.Started, done.UpTo))
		if from.First {
			break
		}
		from.After = found.UpTo
	}
	return done, nil
}
