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

// logAttempt logs how an attempt ended, with the keys that all stages share. err is the
// scrubbed and bounded error that is reported to Temporal. Workers drop the SDK's own line
// about a failed attempt.
func logAttempt(ctx context.Context, lg *slog.Logger, args []any, began time.Time, err error) {
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
	if err == nil {
		line.InfoContext(ctx, "attempt done")
		return
	}
	message := err.Error()
	if app, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		message = app.Message() // without the class
	}
	line.WarnContext(ctx, "attempt failed", "error_class", resultOf(err), "error", message)
}

// requestOf finds the review in an activity's input.
func requestOf(args []any) (review.Request, bool) {
	for _, arg := range args {
		switch p := arg.(type) {
		case review.Request:
			return p, true
		case interface{ request() review.Request }:
			return p.request(), true
		}
	}
	return review.Request{}, false
}
