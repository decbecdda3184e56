package activities

import (
	"context"
	"sync"
	"time"

	"go.temporal.io/sdk/activity"
)

// progress is the content of a heartbeat. The next attempt, the workflow and the Temporal UI
// read it.
type progress struct {
	FirstFailureAt time.Time `json:"first_failure_at,omitzero"`
	Failures       int       `json:"failures,omitempty"` // failed attempts of the activity
	Stopped        int       `json:"stopped,omitempty"`  // attempts that were ended from outside
	// Done and Total count the model calls of a review.
	Done  int `json:"done,omitempty"`
	Total int `json:"total,omitempty"`
}

// A heartbeater sends the heartbeats of one attempt.
type heartbeater struct {
	mu  sync.Mutex
	now progress
}

type heartbeatKey struct{}

func (h *heartbeater) beat(ctx context.Context) {
	h.mu.Lock()
	defer h.mu.Unlock()
	activity.RecordHeartbeat(ctx, h.now)
}

// showProgress adds the progress to the heartbeats of this attempt. Activities without
// heartbeats ignore it.
func showProgress(ctx context.Context, done, total int) {
	h, ok := ctx.Value(heartbeatKey{}).(*heartbeater)
	if !ok {
		return
	}
	h.mu.Lock()
	h.now.Done, h.now.Total = done, total
	h.mu.Unlock()
	h.beat(ctx)
}

// keepHeartbeating sends three heartbeats per heartbeat timeout until stop is called. An
// activity without that timeout is short and sends none.
func keepHeartbeating(ctx context.Context) (beating context.Context, stop func()) {
	timeout := activity.GetInfo(ctx).HeartbeatTimeout
	if timeout == 0 {
		return ctx, func() {}
	}
	h := &heartbeater{now: before(ctx)}
	done := make(chan struct{})
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		tick := time.NewTicker(timeout / 3)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				h.beat(ctx)
			case <-done:
				return
			}
		}
	}()
	return context.WithValue(ctx, heartbeatKey{}, h), func() { close(done); <-stopped }
}
