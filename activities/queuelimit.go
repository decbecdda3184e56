package activities

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
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
}

// Limit returns the queue limit that executes the order: 0 per second stops the queue.
func (o BreakerOrder) Limit(phase Phase, perSecond float32) QueueLimit {
	return QueueLimit{PerSecond: &perSecond, By: o.By, Reason: fmt.Sprintf("%s %s: %s", breakerMark, phase, cut(o.Reason, 400))}
}

// A Phase is what the circuit breaker of a task queue does to it. It is wire format.
type Phase string

// The phases in which a circuit breaker limits its queue.
const (
	PhaseOpen      Phase = "open"      // nothing starts
	PhaseHalfOpen  Phase = "half-open" // a few start, and their results decide
	PhaseThrottled Phase = "throttled" // the endpoint refuses the rate, which is lowered
)

// A QueueLimit is the rate limit that Temporal applies to a task queue for all workers
// together. It is wire format.
type QueueLimit struct {
	// PerSecond is how many activities may start; nil is unlimited, 0 stops the queue.
	PerSecond *float32  `json:"per_second,omitempty"`
	By        string    `json:"by,omitempty"`
	Reason    string    `json:"reason,omitempty"`
	Since     time.Time `json:"since,omitzero"`
}

// breakerMark begins the reason of every limit that a circuit breaker sets. The reason
// also holds the limit before it, which then outlives the workflow, even a terminated
// one.
const breakerMark = "circuit breaker"

var breakerReason = regexp.MustCompile(`(?s)^` + breakerMark + ` ?([a-z-]*): (.*?)(?:; before: (\{.*\}))?$`)

// OfBreaker reports whether a circuit breaker set the limit, not an operator with the
// temporal command.
func (l QueueLimit) OfBreaker() bool { return breakerReason.MatchString(l.Reason) }

// Phase is empty if no circuit breaker set the limit.
func (l QueueLimit) Phase() Phase {
	if found := breakerReason.FindStringSubmatch(l.Reason); found != nil {
		return Phase(found[1])
	}
	return ""
}

// NotClosed reports whether the limit is of an open or half-open circuit breaker.
func (l QueueLimit) NotClosed() bool { return l.Phase() == PhaseOpen || l.Phase() == PhaseHalfOpen }

// Why is the reason for people.
func (l QueueLimit) Why() string {
	if found := breakerReason.FindStringSubmatch(l.Reason); found != nil {
		return found[2]
	}
	return l.Reason
}

// Before is the operator's limit: l itself, unless a circuit breaker set it.
func (l QueueLimit) Before() (before QueueLimit) {
	found := breakerReason.FindStringSubmatch(l.Reason)
	if found == nil {
		return l
	}
	_ = json.Unmarshal([]byte(found[3]), &before) // no limit if there is none
	return before
}

// over returns l with the limit before it in its reason, and no higher than that limit.
func (l QueueLimit) over(before QueueLimit) QueueLimit {
	if before.PerSecond == nil {
		return l
	}
	var kept strings.Builder
	e := json.NewEncoder(&kept)
	e.SetEscapeHTML(false) // <, > and & would be six bytes each
	_ = e.Encode(QueueLimit{PerSecond: before.PerSecond, By: cut(before.By, 100), Reason: cut(before.Reason, 100)})
	l.Reason += "; before: " + strings.TrimSpace(kept.String())
	l.PerSecond = new(min(*l.PerSecond, *before.PerSecond))
	return l
}

// cut bounds a text of a reason, also as JSON: the server accepts 1,000 bytes.
func cut(s string, most int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' {
			return ' '
		}
		return r
	}, s)
	return strings.ToValidUTF8(s[:min(len(s), most)], "")
}

// Stopped reports whether no activity may start.
func (l QueueLimit) Stopped() bool { return l.PerSecond != nil && *l.PerSecond == 0 }

// queueLimits reads and sets the limits of task queues.
type queueLimits interface {
	LimitOf(ctx context.Context, queue string) (QueueLimit, error)
	LimitQueue(ctx context.Context, queue string, limit QueueLimit) error
}

// A LimitMode decides which existing limits a new limit may replace. It is wire format.
type LimitMode string

// The modes of [Bookkeeping.LimitQueue]. All keep the operator's limit.
const (
	LimitTake    LimitMode = "take"    // replaces any limit except an operator's stop
	LimitForce   LimitMode = "force"   // replaces any limit
	LimitKeep    LimitMode = "keep"    // replaces a circuit breaker's limit
	LimitRestore LimitMode = "restore" // replaces a circuit breaker's limit by the operator's
)

// LimitParams is the input of [Bookkeeping.LimitQueue].
type LimitParams struct {
	Queue string     `json:"queue"`
	Limit QueueLimit `json:"limit"`
	Mode  LimitMode  `json:"mode,omitempty"`
}

// LimitQueue sets the limit of a task queue. It reports false, and does nothing, if the
// mode does not allow that: an operator has set another limit.
func (b *Bookkeeping) LimitQueue(ctx context.Context, p LimitParams) (bool, error) {
	now, err := b.Queues.LimitOf(ctx, p.Queue)
	if err != nil {
		return false, err
	}
	limit, before := p.Limit, now.Before()
	switch {
	case p.Mode == LimitTake && before.Stopped(), p.Mode != LimitTake && p.Mode != LimitForce && !now.OfBreaker():
		return false, nil
	case p.Mode == LimitRestore:
		limit = before
	default:
		limit = limit.over(before)
	}
	if err := b.Queues.LimitQueue(ctx, p.Queue, limit); err != nil {
		return false, fmt.Errorf("limit task queue %s: %w", p.Queue, err)
	}
	activity.GetLogger(ctx).Warn("task queue limited", "queue", p.Queue, "phase", string(limit.Phase()),
		"stopped", limit.Stopped(), "by", limit.By, "reason", limit.Why())
	return true, nil
}

// Probing serves the [ProbeQueue] of one stage.
type Probing struct {
	// Endpoint checks that everything the stage talks to responds.
	Endpoint func(context.Context) error
}

// Probe succeeds if the endpoint responds.
func (p *Probing) Probe(ctx context.Context) error { return p.Endpoint(ctx) }
