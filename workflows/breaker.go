package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// The signals of [CircuitBreaker]. They are wire format.
const (
	SignalOpen  = "open"  // with an activities.BreakerOrder
	SignalClose = "close" // without argument
)

// BreakerID is the workflow ID of a task queue's breaker: one at a time.
func BreakerID(queue string) string { return "breaker-" + queue }

// probing names an activity for the compiler; it is never called.
var probing *activities.Probing

// CircuitBreaker keeps a task queue at a standstill, so that what waits there burns
// no attempts, until the endpoint behind it answers a probe or a person releases
// it. Started with a signal that holds the order, it then lets a trickle
// through, and stops the queue again if a new order says that the reviews still
// fail. However it ends, the queue gets back the limit it had.
//
// It is a workflow because a breaker must outlive the worker that pulled it, be
// the only one of its queue, and be seen and canceled in the Temporal UI.
func CircuitBreaker(ctx workflow.Context, queue string) error {
	b := &breakerState{
		queue:    queue,
		orders:   workflow.GetSignalChannel(ctx, SignalOpen),
		releases: workflow.GetSignalChannel(ctx, SignalClose),
	}
	b.orders.Receive(ctx, &b.order)
	b.before = b.order.Before
	for {
		if err := b.carryOut(ctx); err != nil || !b.orders.ReceiveAsync(&b.order) {
			return err
		}
	}
}

// breakerState is the state of one breaker.
type breakerState struct {
	queue    string
	orders   workflow.ReceiveChannel
	releases workflow.ReceiveChannel
	before   activities.QueueLimit   // the limit to restore
	order    activities.BreakerOrder // what is being carried out
	round    int                     // how often the queue was stopped
}

// carryOut carries out an order and what orders follow before the queue is
// released, and restores the queue's limit.
func (b *breakerState) carryOut(ctx workflow.Context) error {
	if b.before.Standstill() && !b.order.Held {
		return nil // an operator has stopped the queue with the temporal command
	}
	err := b.run(ctx)
	ctx, done := workflow.NewDisconnectedContext(ctx)
	defer done()
	if restored := b.limit(ctx, b.before); restored != nil {
		return restored
	}
	return err
}

// run ends when the queue may run freely.
func (b *breakerState) run(ctx workflow.Context) error {
	for {
		fulfilled, err := b.hold(ctx)
		switch {
		case err != nil:
			return err
		case !fulfilled:
			continue // a person wants it otherwise
		}
		again, err := b.ease(ctx)
		if err != nil || !again {
			return err
		}
	}
}

// hold stops the queue until the order is fulfilled, or replaced by a person's.
// Further orders of workers say nothing new.
func (b *breakerState) hold(ctx workflow.Context) (fulfilled bool, err error) {
	b.round++
	ctx, stop := workflow.WithCancel(ctx)
	defer stop()
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Task queue %s stands still. By %s: %s.", b.queue, b.order.By, b.order.Reason))
	if err := b.limit(ctx, b.order.Limit(0)); err != nil {
		return false, err
	}
	replaced := false
	s := workflow.NewSelector(ctx)
	s.AddFuture(b.fulfilment(ctx), func(f workflow.Future) { fulfilled, err = true, f.Get(ctx, nil) })
	s.AddReceive(b.releases, func(c workflow.ReceiveChannel, _ bool) { fulfilled = c.ReceiveAsync(nil) })
	s.AddReceive(b.orders, func(c workflow.ReceiveChannel, _ bool) {
		var order activities.BreakerOrder
		if c.ReceiveAsync(&order); order.Held {
			b.order, replaced = order, true
		}
	})
	for !fulfilled && !replaced {
		s.Select(ctx)
	}
	return fulfilled, err
}

// fulfilment is ready when the order's time is over or the endpoint answers;
// with an error when ctx is canceled.
func (b *breakerState) fulfilment(ctx workflow.Context) workflow.Future {
	done, set := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		switch {
		case !b.order.Held:
			// An endpoint that answers probes but no reviews is probed ever later.
			if err := workflow.Sleep(ctx, failure.Backoff(b.round, 1, 0)); err != nil {
				set.SetError(err)
				return
			}
			set.SetError(workflow.ExecuteActivity(forProbe(ctx, b.queue), probing.Probe).Get(ctx, nil))
		case b.order.Until.IsZero():
			ctx.Done().Receive(ctx, nil)
			set.SetError(ctx.Err())
		default:
			set.SetError(workflow.Sleep(ctx, b.order.Until.Sub(workflow.Now(ctx))))
		}
	})
	return done
}

// ease lets a trickle through for a while: what has waited must not run over an
// endpoint that has only just recovered. again means a new order.
func (b *breakerState) ease(ctx workflow.Context) (again bool, err error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Task queue %s is being released.", b.queue))
	if err := b.limit(ctx, b.order.Limit(easingPerSecond)); err != nil {
		return false, err
	}
	ok, _ := b.orders.ReceiveWithTimeout(ctx, easing, &b.order)
	return ok, ctx.Err()
}

func (b *breakerState) limit(ctx workflow.Context, limit activities.QueueLimit) error {
	return book(ctx, "limit", bookkeeping.LimitQueue, activities.LimitParams{Queue: b.queue, Limit: limit}, nil)
}
