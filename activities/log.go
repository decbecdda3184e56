package activities

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/criticizer/criticizer/review"
)

// logAttempt writes the line by which a review is followed through the logs of
// all stages; told is what Temporal is, scrubbed and bounded. The line that the SDK
// writes of an attempt that failed says no more: workers leave it out.
func logAttempt(ctx context.Context, lg *slog.Logger, args []any, began time.Time, told error) {
	info := activity.GetInfo(ctx)
	name := info.ActivityID
	if info.IsLocalActivity { // its ID is a number
		name = info.ActivityType.Name
	}
	line := lg.With("stage", name, "attempt", info.Attempt,
		"workflow_id", info.WorkflowExecution.ID, "run_id", info.WorkflowExecution.RunID, "duration_ms", time.Since(began).Milliseconds())
	if req, ok := requestOf(args); ok {
		line = line.With("changelist", req.Changelist, "review_version", req.Version)
	}
	if told != nil {
		line.WarnContext(ctx, "attempt failed", "error_class", resultOf(told), "error", messageOf(told))
		return
	}
	line.InfoContext(ctx, "attempt done")
}

// messageOf is what the error says, without what its class says already.
func messageOf(told error) string {
	if failed, ok := errors.AsType[*temporal.ApplicationError](told); ok {
		return failed.Message()
	}
	return told.Error()
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
