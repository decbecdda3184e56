package activities

import (
	"context"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/activity"
)

// ProbeQueue is where the breaker of a task queue asks for probes: the queue
// itself stands still.
func ProbeQueue(queue string) string { return queue + "-probe" }

// A BreakerOrder asks for a task queue to stand still. It is wire format.
type BreakerOrder struct {
	// By and Reason are for people.
	By     string `json:"by"`
	Reason string `json:"reason"`
	// Held keeps the breaker on until it is released by hand or, if that is set,
	// until Until. Otherwise it is on until a probe of the endpoint succeeds.
	Held  bool      `json:"held,omitempty"`
	Until time.Time `json:"until,omitzero"`
	// Before is the limit the queue had, which is restored in the end.
	Before QueueLimit `json:"before"`
}

// Limit is the limit that carries the order out: 0 per second for a standstill.
func (o BreakerOrder) Limit(perSecond float32) QueueLimit {
	return QueueLimit{PerSecond: &perSecond, By: o.By, Reason: breakerMark + o.Reason}
}

// A QueueLimit is the limit that Temporal keeps on a task queue for everyone,
// over those of the workers. It is wire format.
type QueueLimit struct {
	// PerSecond is how many activities may begin; nil is no limit, 0 a standstill.
	PerSecond *float32  `json:"per_second,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// breakerMark begins the reason of every limit that a breaker has set.
const breakerMark = "outage breaker: "

// OfBreaker reports whether a breaker has set the limit, and not an operator with
// the temporal command.
func (l QueueLimit) OfBreaker() bool { return strings.HasPrefix(l.Reason, breakerMark) }

// Why is the reason as it was given.
func (l QueueLimit) Why() string { return strings.TrimPrefix(l.Reason, breakerMark) }

// Standstill reports whether nothing may begin.
func (l QueueLimit) Standstill() bool { return l.PerSecond != nil && *l.PerSecond == 0 }

// queueLimits keeps the limits of task queues.
type queueLimits interface {
	LimitQueue(ctx context.Context, queue string, limit QueueLimit) error
}

// LimitParams sets the limit of one task queue.
type LimitParams struct {
	Queue string     `json:"queue"`
	Limit QueueLimit `json:"limit"`
}

// LimitQueue sets a limit.
func (b *Bookkeeping) LimitQueue(ctx context.Context, p LimitParams) error {
	if err := b.Queues.LimitQueue(ctx, p.Queue, p.Limit); err != nil {
		return fmt.Errorf("limit task queue %s: %w", p.Queue, err)
	}
	activity.GetLogger(ctx).Warn("task queue limited", "queue", p.Queue, "braked", p.Limit.OfBreaker(),
		"standstill", p.Limit.Standstill(), "by", p.Limit.By, "reason", p.Limit.Reason)
	return nil
}

// Probing serves the [ProbeQueue] of one stage.
type Probing struct {
	// Endpoint asks everything the stage talks to for a sign of life, at no
	// review's expense.
	Endpoint func(context.Context) error
}

// Probe succeeds when the endpoint answers.
func (p *Probing) Probe(ctx context.Context) error { return p.Endpoint(ctx) }
