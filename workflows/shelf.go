package workflows

import (
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/review"
)

// The signals about shelves. They are wire format.
const (
	ShelfSignal    = "shelved"  // tells [SettleShelf] that the changelist was shelved again
	OutdatedSignal = "outdated" // tells so to the review of what was shelved before
)

// A Shelf is the input of [SettleShelf]; its field names are wire format.
type Shelf struct {
	ServerID   string            `json:"server_id"`
	Changelist review.Changelist `json:"changelist"`
	// Quiet is how long nobody may have shelved anything before the shelf is reviewed.
	Quiet time.Duration `json:"quiet"`
}

// patience bounds, in quiet times, how long a shelf that never settles waits.
const patience = 10

// SettleShelf waits until a changelist's shelf is left alone, and then starts one
// review of what is shelved by then. There is one run for each changelist at a time:
// whoever shelves signals it, or starts it by that. It does not wait for the end of
// the review; what is shelved meanwhile gets one of its own, and ends the other.
func SettleShelf(ctx workflow.Context, shelf Shelf) error {
	shelved := workflow.GetSignalChannel(ctx, ShelfSignal)
	if err := shelf.outdate(ctx); err != nil {
		return err
	}
	shelf.settle(ctx, shelved)
	if err := shelf.review(ctx); err != nil {
		return err
	}
	if !shelved.ReceiveAsync(nil) {
		return nil
	}
	for shelved.ReceiveAsync(nil) {
	}
	return workflow.NewContinueAsNewError(ctx, SettleShelf, shelf)
}

// outdate tells the reviews of what was shelved before that it no longer is, at once:
// they cost model calls, and nobody wants to read their mails.
func (s Shelf) outdate(ctx workflow.Context) error {
	var keys []string
	err := book(ctx, "outdated", bookkeeping.ReviewsOfShelf, s.Changelist, &keys)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if err := workflow.SignalExternalWorkflow(ctx, key, "", OutdatedSignal, nil).Get(ctx, nil); err != nil {
			workflow.GetLogger(ctx).Info("review of the shelf was not told that it is outdated: it is over", "workflow_id", key, "error", err)
		}
	}
	return nil
}

// whileNewest ends, for a shelf's review, when the changelist is shelved again. What
// is being mailed by then is mailed to the end.
func (r *reviewing) whileNewest(ctx workflow.Context) workflow.Context {
	if !r.req.Shelved {
		return ctx
	}
	newest, end := workflow.WithCancel(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, OutdatedSignal).Receive(ctx, nil)
		r.outdated = true
		end()
	})
	return newest
}

// settle waits for the quiet time since the last signal.
func (s Shelf) settle(ctx workflow.Context, shelved workflow.ReceiveChannel) {
	end := workflow.Now(ctx).Add(patience * s.Quiet)
	for again := true; again; {
		wait := min(s.Quiet, end.Sub(workflow.Now(ctx)))
		again = wait > 0
		if again {
			again, _ = shelved.ReceiveWithTimeout(ctx, wait, nil)
		}
	}
}

// review starts the review under the next free version. The run that a reset began
// from is the event, for it stays the same.
func (s Shelf) review(ctx workflow.Context) error {
	var req review.Request
	err := book(ctx, "reserve", bookkeeping.ReserveShelf, activities.ShelfParams{
		ServerID: s.ServerID, Changelist: s.Changelist, Event: workflow.GetInfo(ctx).OriginalRunID,
	}, &req)
	if err != nil {
		return err
	}
	return startChild(ctx, req)
}

// startChild starts a review that outlives the workflow that starts it. One that
// exists already is left as it is.
func startChild(ctx workflow.Context, req review.Request) error {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            req.Key,
		TaskQueue:             activities.QueueBookkeeping,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		TypedSearchAttributes: StartAttributes(req),
	})
	err := workflow.ExecuteChildWorkflow(ctx, ReviewChangelist, req).GetChildWorkflowExecution().Get(ctx, nil)
	if temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return nil
	}
	return err
}
