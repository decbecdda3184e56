package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// progress is what a heartbeat carries: from one attempt to the next, and to
// whoever looks at the workflow.
type progress struct {
	FirstFailureAt time.Time `json:"first_failure_at,omitzero"`
	// Done and Total count the model calls of a review.
	Done  int `json:"done,omitempty"`
	Total int `json:"total,omitempty"`
}

// A pulse is the progress that the next heartbeat tells.
type pulse struct {
	mu  sync.Mutex
	now progress
}

type pulseKey struct{}

func (p *pulse) beat(ctx context.Context) {
	p.mu.Lock()
	defer p.mu.Unlock()
	activity.RecordHeartbeat(ctx, p.now)
}

// showProgress has the heartbeats of this attempt tell how far it is.
func showProgress(ctx context.Context, done, total int) {
	p, ok := ctx.Value(pulseKey{}).(*pulse)
	if !ok { // the activity is short and has none
		return
	}
	p.mu.Lock()
	p.now.Done, p.now.Total = done, total
	p.mu.Unlock()
	p.beat(ctx)
}

// keepHeartbeating beats until stop is called, every third of the heartbeat timeout.
// Activities without one are short and need none.
func keepHeartbeating(ctx context.Context) (beating context.Context, stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout == 0 {
		return ctx, func() {}
	}
	p := &pulse{now: progress{FirstFailureAt: firstFailure(ctx)}}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(timeout / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				p.beat(ctx)
			case <-done:
				return
			}
		}
	}()
	return context.WithValue(ctx, pulseKey{}, p), func() { close(done); <-stopped }
}
