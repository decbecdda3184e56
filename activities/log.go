package activities

import (
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/criticizer/criticizer/review"
)

// logAttempt writes the line by which a review is followed through the logs of
// all stages; told is what Temporal is. Why an attempt failed is in the SDK's own
// line and in the history.
func logAttempt(ctx context.Context, lg *slog.Logger, args []any, began time.Time, told error) {
	info := activity.GetInfo(ctx)
	name := info.ActivityID
	if info.IsLocalActivity { // its ID is a number
		name = info.ActivityType.Name
	}
	line := lg.With("stage", name, "attempt", info.Attempt,
		"workflow_id", info.WorkflowExecution.ID, "duration_ms", time.Since(began).Milliseconds())
	if req, ok := requestOf(args); ok {
		line = line.With("changelist", req.Changelist, "review_version", req.Version)
	}
	if told != nil {
		line.WarnContext(ctx, "attempt failed", "error_class", resultOf(told))
		return
	}
	line.InfoContext(ctx, "attempt done")
}

// requestOf finds the review that an activity's input is about.
func requestOf(args []any) (review.Request, bool) {
	for _, arg := range args {
		switch p := arg.(type) {
		case review.Request:
			return p, true
		case StageParams:
			return p.Request, true
		case TellParams:
			return p.Request, true
		case FinishParams:
			return p.Request, true
		case SkipParams:
			return p.Request, true
		case DeadLetterParams:
			return p.Request, true
		case ReplayParams:
			return p.Request, true
		}
	}
	return review.Request{}, false
}
