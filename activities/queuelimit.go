package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
)

// A BreakerOrder asks to open the circuit breaker of a task queue. It is wire format.
type BreakerOrder struct {
	// By and Reason are shown to people.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Manual keeps the breaker open until a person closes it or, if set, until Until.
	// Otherwise it is open until a probe of the endpoint succeeds.
	Manual bool      `json:"manual,omitempty"`
	Until  time.Time `json:"until,omitzero"`
	// Before is the limit of the queue that is restored in the end.
	Before QueueLimit `json:"before"`
}

// Limit is a limit that carries the order out: 0 per second stops the queue.
func (o BreakerOrder) Limit(perSecond float32) QueueLimit {
	return QueueLimit{PerSecond: &perSecond, By: o.By, Reason: breakerMark + o.Reason}
}

// A QueueLimit is the rate limit that Temporal applies to a task queue for all workers
// together. It is wire format.
type QueueLimit struct {
	// PerSecond is how many activities may start; nil is unlimited, 0 stops the queue.
	PerSecond *float32  `json:"per_second,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// breakerMark begins the reason of every limit that a circuit breaker sets.
const breakerMark = "circuit breaker: "

// OfBreaker reports whether a circuit breaker set the limit, not an operator with the
// temporal command.
func (l QueueLimit) OfBreaker() bool { return strings.HasPrefix(l.Reason, breakerMark) }

// Why is the reason without the mark.
func (l QueueLimit) Why() string { return strings.TrimPrefix(l.Reason, breakerMark) }

// Stopped reports whether no activity may start.
func (l QueueLimit) Stopped() bool { return l.PerSecond != nil && *l.PerSecond == 0 }

// queueLimits sets the limits of task queues.
type queueLimits interface {
	LimitQueue(ctx context.Context, queue string, limit QueueLimit) error
}

// LimitParams is the input of [Bookkeeping.LimitQueue].
type LimitParams struct {
	Queue string     `json:"queue"`
	Limit QueueLimit `json:"limit"`
}

// LimitQueue sets the limit of a task queue.
func (b *Bookkeeping) LimitQueue(ctx context.Context, p LimitParams) error {
	if err := b.Queues.LimitQueue(ctx, p.Queue, p.Limit); err != nil {
		return fmt.Errorf("limit task queue %s: %w", p.Queue, err)
	}
	activity.GetLogger(ctx).Warn("task queue limited", "queue", p.Queue, "breaker_open", p.Limit.OfBreaker() && p.Limit.Stopped(),
		"stopped", p.Limit.Stopped(), "by", p.Limit.By, "reason", p.Limit.Reason)
	return nil
}

// Probing serves the [ProbeQueue] of one stage.
type Probing struct {
	// Endpoint checks that everything the stage talks to responds.
	Endpoint func(context.Context) error
}

// Probe succeeds if the endpoint responds.
func (p *Probing) Probe(ctx context.Context) error { return p.Endpoint(ctx) }
