package workflows

import (
	"fmt"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/workflows/contract"
)

// outdatedSignal notifies the review of a former content that the changelist was shelved
// again. It is wire format.
const outdatedSignal = "outdated"

// maxQuiets limits how long a shelf that never settles waits, in quiet times.
const maxQuiets = 10

// SettleShelf waits until the changelist has not been shelved for the quiet time, then
// starts one review of the shelf's content. Each changelist has at most one run: a shelve
// event signals it, or starts it with the signal. It does not wait for the end of the
// review; a later shelve event starts another run, which ends that review.
func SettleShelf(ctx workflow.Context, shelf contract.Shelf) error {
	// The reviews of former contents end before the quiet time: they cost model calls, and
	// their mails are useless.
	var keys []string
	if err := book(ctx, "outdated", bookkeeper.ReviewsOfShelf, shelf.Changelist, &keys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := workflow.SignalExternalWorkflow(ctx, key, "", outdatedSignal, nil).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("review of the shelf not signaled: it has ended", "workflow_id", key, "error", err)
		}
	}
	shelved := workflow.GetSignalChannel(ctx, contract.ShelfSignal)
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Changelist %d: **waiting for %s without a shelve event**", shelf.Changelist, shelf.Quiet))
	end := workflow.Now(ctx).Add(maxQuiets * shelf.Quiet)
	for again := true; again; {
		wait := min(shelf.Quiet, end.Sub(workflow.Now(ctx)))
		again = wait > 0
		if again {
			quiet := workflow.AwaitOptions{Timeout: wait, TimerOptions: workflow.TimerOptions{Summary: "time without a shelve event"}}
			again, _ = workflow.AwaitWithOptions(ctx, quiet, func() bool { return shelved.ReceiveAsync(&shelf.At) })
		}
	}
	// The original run ID identifies the event, because a reset does not change it.
	event := workflow.GetInfo(ctx).OriginalRunID
	var req review.Request
	err := book(ctx, "reserve", bookkeeper.ReserveShelf, activities.ShelfParams{ServerID: shelf.ServerID, Changelist: shelf.Changelist, Event: event}, &req)
	if err != nil {
		return err
	}
	req.ShelvedAt = shelf.At
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Changelist %d: review %s", shelf.Changelist, req.Key))
	if err := startChild(ctx, req); err != nil {
		return err
	}
	if !shelved.ReceiveAsync(&shelf.At) {
		return nil
	}
	for shelved.ReceiveAsync(&shelf.At) {
	}
	return workflow.NewContinueAsNewError(ctx, SettleShelf, shelf)
}

// startChild starts a review that outlives this workflow, unless it exists.
func startChild(ctx workflow.Context, req review.Request) error {
	start := contract.StartOptions(req)
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            start.ID,
		TaskQueue:             start.TaskQueue,
		WorkflowIDReusePolicy: start.WorkflowIDReusePolicy,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		TypedSearchAttributes: start.TypedSearchAttributes,
		StaticSummary:         start.StaticSummary,
		StaticDetails:         start.StaticDetails,
	})
	err := workflow.ExecuteChildWorkflow(ctx, ReviewChangelist, req).GetChildWorkflowExecution().Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}

// untilReshelved returns a context that ends when the shelf under review is shelved again.
func (r *reviewState) untilReshelved(ctx workflow.Context) workflow.Context {
	if !r.req.Shelved {
		return ctx
	}
	newest, end := workflow.WithCancel(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, outdatedSignal).Receive(ctx, nil)
		if workflow.Await(ctx, func() bool { return r.job.ID != 0 }) != nil { // only an open job can be skipped
			return
		}
		r.outdated = true
		end()
	})
	return newest
}
