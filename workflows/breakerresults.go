package workflows

import (
	"cmp"
	"fmt"
	"time"

	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

const (
	// lowestRate is the rate per second below which a throttled queue is stopped.
	lowestRate = 0.05
	// fullLevel is the number of activities after whose success a breaker closes.
	fullLevel = 16
	// quietPaces and the others are waiting times, in paces of 10 seconds.
	quietPaces   = 6
	idlePaces    = 1
	silencePaces = 30
	// maxReports limits the history of reports, which is part of the workflow's input.
	maxReports = 100
)

// add adds a report to the results, and forgets those that the window does not cover.
func (b *breaker) add(now time.Time, r activities.Results) {
	b.Seen.Add(r)
	b.Rules = r.Rules
	r.At = now
	b.Recent = append(b.Recent, r)
	total := b.total().Decisive()
	for len(b.Recent) > 1 {
		oldest := b.Recent[0]
		if now.Sub(oldest.At) < failure.DelayCeiling && total-oldest.Decisive() < r.Rules.Window && len(b.Recent) <= maxReports {
			break
		}
		total -= oldest.Decisive()
		b.Recent = b.Recent[1:]
	}
}

func (b *breaker) total() (total activities.Results) {
	for _, r := range b.Recent {
		total.Add(r)
	}
	return total
}

// throughput is how many activities began per second.
func (b *breaker) throughput(now time.Time, total activities.Results) float64 {
	return float64(total.Begun) / max(1, now.Sub(b.Recent[0].At).Seconds())
}

// outage reports whether the endpoint fails for all reviews: several failures of several
// reviews, as a share of all results. The failures of a single review count if the
// endpoint did not respond at all, because no change causes that: half as many are enough.
func (b *breaker) outage(total activities.Results) (reason string, is bool) {
	rules := total.Rules
	several := total.Failed > 0 && total.Failed >= rules.Failures && len(total.Reviews) >= rules.Reviews
	silence := total.NoAnswer > 0 && 2*total.NoAnswer >= rules.Failures
	share := float64(total.Failed) >= rules.Ratio*float64(total.Succeeded+total.Failed)
	denied := len(total.Denied) > 0 && len(total.Denied) >= rules.Reviews
	if !denied && !(share && (several || silence)) {
		return "", false
	}
	return fmt.Sprintf("%d of %d results failed, of %d reviews, the last %s", total.Bad(), total.Decisive(), len(total.Reviews)+len(total.Denied), total.Last), true
}

// failed reports whether too many activities of phase half-open failed, and answered how
// many have ended.
func (b *breaker) failed() bool {
	bad := float64(b.Seen.Bad())
	return bad > 0 && bad >= b.Rules.Ratio*float64(b.Level)
}

func (b *breaker) answered() int { return b.Seen.Decisive() + b.Seen.Other }

func (b *breaker) interrupted() bool { return b.Next != nil || b.Closing }

// pace is the time between two adjustments.
func (b *breaker) pace() time.Duration {
	return cmp.Or(b.Rules.Pace, 10*time.Second)
}

// runByTime continues a run of an older build, whose phase half-open ended by time.
func (b *breaker) runByTime(ctx workflow.Context) error {
	b.byTime = true
	b.orders.Receive(ctx, &b.Order)
	before := b.Order.Before
	if before.Stopped() && !b.Order.Manual {
		return nil // an operator stopped the queue with the temporal command
	}
	var err error
	for again := true; again && err == nil; {
		b.Phase = activities.PhaseOpen
		if err = b.open(ctx); err == nil && b.Next == nil {
			if err = b.setLimit(ctx, 1); err == nil {
				again, _ = b.orders.ReceiveWithTimeout(ctx, 10*time.Second, &b.Order)
				err = ctx.Err()
			}
		} else if err == nil {
			b.Order, b.Next = *b.Next, nil
		}
	}
	ctx, done := workflow.NewDisconnectedContext(ctx)
	defer done()
	if restored := b.limitQueue(ctx, before, activities.LimitAny, nil); restored != nil {
		return restored
	}
	b.byTime, b.Phase = false, ""
	if b.receive(ctx); err == nil && (b.Next != nil || len(b.Recent) > 0) {
		return workflow.NewContinueAsNewError(ctx, CircuitBreaker, b.queue, b.BreakerState)
	}
	return err
}
