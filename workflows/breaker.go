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
	SignalClose = "close" // without an argument
)

// BreakerID is the workflow ID of a task queue's circuit breaker: a queue has at most one.
func BreakerID(queue string) string { return "breaker-" + queue }

// CircuitBreaker stops a task queue, so that its activities wait and use no attempts. It
// is started by [SignalOpen]. It half-opens if the endpoint answers a probe, the order's
// time is over, or a person closes it: activities then start at a low rate. A new order
// opens it again. When it ends, for any reason, the queue has its former limit.
//
// It is a workflow because it must outlive the worker that opened it, exist once per
// queue, and be visible and cancelable in the Temporal UI.
func CircuitBreaker(ctx workflow.Context, queue string) error {
	b := &breakerState{
		queue:  queue,
		orders: workflow.GetSignalChannel(ctx, SignalOpen),
		closes: workflow.GetSignalChannel(ctx, SignalClose),
	}
	b.orders.Receive(ctx, &b.order)
	b.before = b.order.Before
	for {
		if err := b.serve(ctx); err != nil || !b.orders.ReceiveAsync(&b.order) {
			return err
		}
	}
}

// breakerState is the state of one circuit breaker.
type breakerState struct {
	queue    string
	orders   workflow.ReceiveChannel // of SignalOpen
	closes   workflow.ReceiveChannel // of SignalClose
	before   activities.QueueLimit   // the queue's limit to restore
	order    activities.BreakerOrder // the current one
	openings int                     // how often the breaker opened
}

// serve carries out orders until the breaker closes, and restores the queue's limit.
func (b *breakerState) serve(ctx workflow.Context) error {
	if b.before.Stopped() && !b.order.Manual {
		return nil // an operator stopped the queue with the temporal command
	}
	err := b.run(ctx)
	ctx, done := workflow.NewDisconnectedContext(ctx)
	defer done()
	if restored := b.setLimit(ctx, b.before); restored != nil {
		return restored
	}
	return err
}

// run returns when the breaker may close.
func (b *breakerState) run(ctx workflow.Context) error {
	for {
		done, err := b.open(ctx)
		if err != nil {
			return err
		}
		if !done {
			continue // a person's order replaced it
		}
		again, err := b.halfOpen(ctx)
		if err != nil || !again {
			return err
		}
	}
}

// open stops the queue until the order is done, or replaced by a person's order. An order
// from another worker changes nothing.
func (b *breakerState) open(ctx workflow.Context) (done bool, err error) {
	b.openings++
	ctx, stop := workflow.WithCancel(ctx)
	defer stop()
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Circuit breaker of task queue %s is open. By %s: %s.", b.queue, b.order.By, b.order.Reason))
	if err := b.setLimit(ctx, b.order.Limit(0)); err != nil {
		return false, err
	}
	replaced := false
	s := workflow.NewSelector(ctx)
	s.AddFuture(b.orderDone(ctx), func(f workflow.Future) { done, err = true, f.Get(ctx, nil) })
	s.AddReceive(b.closes, func(c workflow.ReceiveChannel, _ bool) { done = c.ReceiveAsync(nil) })
	s.AddReceive(b.orders, func(c workflow.ReceiveChannel, _ bool) {
		var order activities.BreakerOrder
		if c.ReceiveAsync(&order); order.Manual {
			b.order, replaced = order, true
		}
	})
	for !done && !replaced {
		s.Select(ctx)
	}
	return done, err
}

// orderDone is ready when the endpoint answers a probe or a manual order's time is over;
// with an error if ctx is canceled.
func (b *breakerState) orderDone(ctx workflow.Context) workflow.Future {
	future, set := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		switch {
		case !b.order.Manual:
			// The delay grows: an endpoint can answer probes and fail reviews.
			if err := workflow.Sleep(ctx, failure.Backoff(b.openings, 1, 0)); err != nil {
				set.SetError(err)
				return
			}
			set.SetError(workflow.ExecuteActivity(probePolicy(b.queue).on(ctx, ProbeID), probing.Probe).Get(ctx, nil))
		case b.order.Until.IsZero():
			ctx.Done().Receive(ctx, nil)
			set.SetError(ctx.Err())
		default:
			set.SetError(workflow.Sleep(ctx, b.order.Until.Sub(workflow.Now(ctx))))
		}
	})
	return future
}

// ProbeID is the activity ID of a circuit breaker's probe.
const ProbeID = "probe"

// halfOpen starts activities at a low rate for a while: the full backlog could overload an
// endpoint that has just recovered. again means that a new order arrived.
func (b *breakerState) halfOpen(ctx workflow.Context) (again bool, err error) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Circuit breaker of task queue %s is half-open.", b.queue))
	if err := b.setLimit(ctx, b.order.Limit(halfOpenPerSecond)); err != nil {
		return false, err
	}
	ok, _ := b.orders.ReceiveWithTimeout(ctx, halfOpenTime, &b.order)
	return ok, ctx.Err()
}

func (b *breakerState) setLimit(ctx workflow.Context, limit activities.QueueLimit) error {
	return book(ctx, "limit", bookkeeping.LimitQueue, activities.LimitParams{Queue: b.queue, Limit: limit}, nil)
}
