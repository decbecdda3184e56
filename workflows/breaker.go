package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// The signals of [CircuitBreaker]. They are wire format.
const (
	SignalOpen    = "open"    // with an activities.BreakerOrder
	SignalClose   = "close"   // without an argument
	SignalResults = "results" // with activities.Results
)

// BreakerID is the workflow ID of a task queue's circuit breaker: a queue has at most one.
func BreakerID(queue string) string { return "breaker-" + queue }

// ProbeID begins the activity IDs of a circuit breaker's probes.
const ProbeID = "probe"

// A BreakerState is the state of a circuit breaker, which a continued run takes over.
// Its field names are wire format.
type BreakerState struct {
	// Phase is empty while the breaker is closed and watches the results.
	Phase activities.Phase `json:"phase,omitempty"`
	// Order opened the breaker.
	Order activities.BreakerOrder `json:"order,omitzero"`
	// Next is an order that has arrived, and Closing a signal to close.
	Next    *activities.BreakerOrder `json:"next,omitempty"`
	Closing bool                     `json:"closing,omitempty"`
	// Recent are the last reports, Seen what was reported since the current step began.
	Recent []activities.Results `json:"recent,omitempty"`
	Seen   activities.Results   `json:"seen,omitzero"`
	// Level is how many activities phase half-open starts.
	Level int `json:"level,omitempty"`
	// Rate is the limit of phase throttled, and Top the rate at which it ends.
	Rate float64 `json:"rate,omitempty"`
	Top  float64 `json:"top,omitempty"`
	// Rules are the rules of the last report.
	Rules activities.BreakerRules `json:"rules,omitzero"`
	// Openings is how often the breaker opened since the endpoint recovered.
	Openings int `json:"openings,omitempty"`
	// Limited means that the breaker has set a limit.
	Limited bool `json:"limited,omitempty"`
}

// CircuitBreaker protects the endpoint of a task queue's activities. Workers start it with
// the first failure. It watches the results that all workers report, and opens if the
// endpoint fails for all reviews, or an operator asks for it: the queue stops, so that its
// activities wait and use no attempts. It half-opens if the endpoint answers a probe, the
// order's time is over, or a person closes it. When it ends, for any reason, the queue has
// the operator's limit, if there is one.
//
// It is a workflow because it must outlive the workers, exist once per queue, and be
// visible and cancelable in the Temporal UI.
func CircuitBreaker(ctx workflow.Context, queue string, state BreakerState) error {
	b := &breaker{
		BreakerState: state, queue: queue,
		orders:  workflow.GetSignalChannel(ctx, SignalOpen),
		closes:  workflow.GetSignalChannel(ctx, SignalClose),
		results: workflow.GetSignalChannel(ctx, SignalResults),
	}
	if err := workflow.SetQueryHandler(ctx, QueryState, func() (BreakerState, error) { return b.BreakerState, nil }); err != nil {
		return err
	}
	err := workflow.Await(ctx, func() bool {
		return b.orders.Len()+b.closes.Len()+b.results.Len() > 0 || b.Phase != "" || len(b.Recent) > 0
	})
	if err != nil {
		return err // canceled before its first order
	}
	return b.run(ctx)
}

// breaker is one run of a circuit breaker.
type breaker struct {
	BreakerState

	queue      string
	orders     workflow.ReceiveChannel // of SignalOpen
	closes     workflow.ReceiveChannel // of SignalClose
	results    workflow.ReceiveChannel // of SignalResults
	activities int                     // number of activities of this run, for their IDs
	ended      bool
}

// run ends when nothing fails any more. The queue then has the operator's limit, also if
// ctx is canceled.
func (b *breaker) run(ctx workflow.Context) error {
	for {
		err := b.steps(ctx)
		if workflow.IsContinueAsNewError(err) {
			return err
		}
		last, done := workflow.NewDisconnectedContext(ctx)
		restored := b.close(last)
		done()
		if restored != nil {
			return restored
		}
		b.ended = false
		if b.receive(ctx); err != nil || b.Next == nil && b.total().Bad() == 0 {
			return err
		}
	}
}

// steps makes one step after the other, each of which sets the next phase.
func (b *breaker) steps(ctx workflow.Context) error {
	var err error
	for err == nil && !b.ended {
		b.receive(ctx)
		if b.Next != nil {
			b.Phase, b.Order, b.Next = activities.PhaseOpen, *b.Next, nil
		}
		switch b.Phase {
		case activities.PhaseOpen:
			err = b.open(ctx)
		case activities.PhaseHalfOpen:
			err = b.halfOpen(ctx)
		case activities.PhaseThrottled:
			err = b.throttle(ctx)
		default:
			err = b.watch(ctx)
		}
		if b.receive(ctx); err == nil && !b.ended && workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, CircuitBreaker, b.queue, b.BreakerState)
		}
	}
	return err
}

// receive receives all signals. A worker's order changes nothing while the breaker is
// open. Each is decoded into a new value: JSON keeps the fields that it lacks.
func (b *breaker) receive(ctx workflow.Context) {
	for {
		var order activities.BreakerOrder
		if !b.orders.ReceiveAsync(&order) {
			break
		}
		if order.Manual || b.Phase != activities.PhaseOpen {
			b.Next = &order
		}
	}
	for b.closes.ReceiveAsync(nil) {
		b.Closing = true
	}
	for {
		var r activities.Results
		if !b.results.ReceiveAsync(&r) {
			break
		}
		b.add(workflow.Now(ctx), r)
	}
}

// await waits until ready holds, an order or a signal to close arrives, or the time is
// over; no time is unlimited.
func (b *breaker) await(ctx workflow.Context, timeout time.Duration, summary string, ready func() bool) (ok bool, err error) {
	cond := func() bool {
		if ready() {
			return true
		}
		b.receive(ctx)
		return b.interrupted() || ready()
	}
	if timeout == 0 {
		return true, workflow.Await(ctx, cond)
	}
	return workflow.AwaitWithOptions(ctx, workflow.AwaitOptions{Timeout: timeout, TimerOptions: workflow.TimerOptions{Summary: summary}}, cond)
}

// watch is the step of a closed breaker. It ends the run if nothing fails any more.
func (b *breaker) watch(ctx workflow.Context) error {
	b.show(ctx, "closed: it watches the results")
	if b.decide(ctx) {
		return nil
	}
	b.Seen = activities.Results{}
	ok, err := b.await(ctx, quietPaces*b.pace(), "time without a failure", func() bool { return b.Seen.Bad() > 0 })
	b.ended = !ok || b.Closing && b.Next == nil
	b.Closing = false
	return err
}

// decide sets the phase by the recent results, and reports whether they demand one.
func (b *breaker) decide(ctx workflow.Context) bool {
	total := b.total()
	reason, outage := total.Outage()
	switch {
	case outage:
		b.reopen(total.By, reason)
	case total.Refused > 0 && b.Phase == "":
		b.Phase, b.Order = activities.PhaseThrottled, activities.BreakerOrder{By: total.By, Reason: "the endpoint refuses the rate"}
		b.Top = max(2*b.throughput(workflow.Now(ctx), total), 16*lowestRate)
		b.Rate = b.Top / 4
	default:
		return false
	}
	b.Recent = nil
	return true
}

func (b *breaker) reopen(by, reason string) {
	b.Phase, b.Order = activities.PhaseOpen, activities.BreakerOrder{By: by, Reason: reason}
}

// open stops the queue until the order is done, or replaced by a person's order.
func (b *breaker) open(ctx workflow.Context) error {
	b.Openings++
	b.show(ctx, "open")
	ctx, stop := workflow.WithCancel(ctx)
	defer stop()
	if err := b.setLimit(ctx, 0); err != nil || b.ended {
		return err
	}
	done := b.orderDone(ctx)
	if _, err := b.await(ctx, 0, "", done.IsReady); err != nil {
		return err
	}
	b.Closing = false
	if b.Next == nil {
		b.Phase, b.Level, b.Recent = activities.PhaseHalfOpen, 1, nil
	}
	if done.IsReady() {
		return done.Get(ctx, nil)
	}
	return nil
}

// orderDone is ready when the endpoint answers a probe or a manual order's time is over;
// with an error if ctx is canceled.
func (b *breaker) orderDone(ctx workflow.Context) workflow.Future {
	future, set := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(ctx workflow.Context) {
		switch {
		case !b.Order.Manual:
			// The delay grows: an endpoint can answer probes and fail reviews.
			if err := workflow.Sleep(ctx, failure.Backoff(b.Openings, 1, 0)); err != nil {
				set.SetError(err)
				return
			}
			set.SetError(probePolicy(b.queue).run(ctx, b.id(ProbeID), &activities.Spent{}, nil, probing.Probe))
		case b.Order.Until.IsZero():
			ctx.Done().Receive(ctx, nil)
			set.SetError(ctx.Err())
		default:
			set.SetError(workflow.Sleep(ctx, b.Order.Until.Sub(workflow.Now(ctx))))
		}
	})
	return future
}

// halfOpen starts Level activities and stops the queue until their results are known: the
// full backlog could overload an endpoint that has just recovered. Twice as many follow if
// they succeed.
func (b *breaker) halfOpen(ctx workflow.Context) error {
	b.show(ctx, fmt.Sprintf("half-open: %d may start", b.Level))
	b.Seen = activities.Results{}
	if err := b.setLimit(ctx, float32(b.Level)); err != nil || b.ended {
		return err
	}
	inTime, err := b.try(ctx)
	switch idle := !inTime && b.Seen.Begun == 0; {
	case err != nil || b.Next != nil || b.ended:
		return err
	case b.failed():
		b.reopen(b.Seen.By, fmt.Sprintf("half-open: %d of %d failed, the last %s", b.Seen.Bad(), b.Seen.Decisive(), b.Seen.Last))
	case b.Closing, idle, b.Seen.Succeeded > 0 && b.Level >= fullLevel:
		b.ended = b.Order.Manual // nothing failed
		return b.close(ctx)
	case b.Seen.Succeeded > 0:
		b.Level *= 2
	}
	return nil
}

// try waits until Level activities have ended, or those that have begun meanwhile.
func (b *breaker) try(ctx workflow.Context) (inTime bool, err error) {
	decided := func() bool { return b.failed() || b.answered() >= b.Level }
	inTime, err = b.await(ctx, idlePaces*b.pace(), "time without an activity", func() bool { return b.Seen.Begun >= b.Level || decided() })
	if err != nil || b.interrupted() || decided() || b.Seen.Begun == 0 {
		return inTime, err
	}
	b.Level = min(b.Level, b.Seen.Begun)
	if err := b.setLimit(ctx, 0); err != nil || b.ended {
		return inTime, err
	}
	return b.await(ctx, silencePaces*b.pace(), "time without a result", decided)
}

// throttle limits the rate for a while: half as much if the endpoint refused an attempt in
// that time, else a little more.
func (b *breaker) throttle(ctx workflow.Context) error {
	b.show(ctx, fmt.Sprintf("throttled to %.2g per second", b.Rate))
	b.Seen = activities.Results{}
	if err := b.setLimit(ctx, float32(b.Rate)); err != nil || b.ended {
		return err
	}
	_, err := b.await(ctx, b.pace(), "time between two adjustments", func() bool { _, outage := b.total().Outage(); return outage })
	switch {
	case err != nil || b.Next != nil:
		return err
	case b.Closing:
		return b.close(ctx)
	case b.decide(ctx):
		return nil
	case b.Seen.Refused > 0:
		if b.Rate /= 2; b.Rate < lowestRate {
			b.reopen(b.Seen.By, "the endpoint refuses any rate")
		}
		return nil
	}
	if b.Rate += b.Top / 20; b.Rate >= b.Top {
		return b.close(ctx)
	}
	return nil
}

// close restores the operator's limit and watches the results.
func (b *breaker) close(ctx workflow.Context) error {
	b.Phase, b.Closing, b.Recent = "", false, nil
	if b.Level >= fullLevel {
		b.Openings, b.Level = 0, 0
	}
	if !b.Limited {
		return nil
	}
	b.Limited = false
	return b.limitQueue(ctx, activities.QueueLimit{}, activities.LimitRestore, nil)
}

// setLimit sets the queue's limit. The breaker has ended if an operator has set another.
func (b *breaker) setLimit(ctx workflow.Context, perSecond float32) error {
	mode := activities.LimitKeep
	switch {
	case b.Order.Manual && b.Phase == activities.PhaseOpen:
		mode = activities.LimitForce
	case !b.Limited:
		mode = activities.LimitTake
	}
	b.Limited = true
	var set bool
	if err := b.limitQueue(ctx, b.Order.Limit(b.Phase, perSecond), mode, &set); err != nil {
		return err
	}
	b.ended = !set
	return nil
}

func (b *breaker) limitQueue(ctx workflow.Context, limit activities.QueueLimit, mode activities.LimitMode, out any) error {
	return book(ctx, b.id("limit"), bookkeeping.LimitQueue, activities.LimitParams{Queue: b.queue, Limit: limit, Mode: mode}, out)
}

// id returns a new activity ID: the ID of a canceled activity can still be in use.
func (b *breaker) id(name string) string {
	b.activities++
	return fmt.Sprintf("%s-%d", name, b.activities)
}

func (b *breaker) show(ctx workflow.Context, what string) {
	by := ""
	if b.Order.By != "" && b.Phase != "" {
		by = fmt.Sprintf(" By %s: %s.", b.Order.By, b.Order.Reason)
	}
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Circuit breaker of task queue %s is **%s**.%s", b.queue, what, by))
}
