package activities

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A CircuitBreaker counts how the attempts of one stage end in this process, and opens
// the circuit breaker of the task queue if the stage's endpoint fails for all reviews:
// several failures of several reviews without a success between them. The failures of a
// single review count if the endpoint did not respond at all, because no change causes
// that.
//
// Temporal takes a moment to stop a task queue, so attempts that begin in this process
// wait until the breaker closes.
type CircuitBreaker struct {
	lg    *slog.Logger
	cfg   CircuitBreakerConfig
	queue breakerControl

	mu       sync.Mutex
	failures []endpointFailure // since the last success, oldest first
	closed   chan struct{}     // closed when the breaker closes; nil while it is closed
}

// breakerControl opens the circuit breaker of one task queue.
type breakerControl interface {
	// Open opens the breaker, with a reason for people.
	Open(ctx context.Context, reason string) error
	// IsOpen reports true from the return of Open on, until the breaker half-opens.
	IsOpen(ctx context.Context) (bool, error)
}

// CircuitBreakerConfig says when a [CircuitBreaker] opens.
type CircuitBreakerConfig struct {
	// Failures is the number of consecutive failures. Default: 4, of an attempt budget
	// of 5.
	Failures int
	// Reviews is the number of reviews among them. Default: 2.
	Reviews int
	// IgnoreDenied ignores refused credentials and exhausted quota. Otherwise the
	// breaker opens when Reviews reviews met them, because each of these reviews is
	// dead-lettered at once.
	IgnoreDenied bool
}

// An endpointFailure is a failure that the endpoint may have caused.
type endpointFailure struct {
	workflowID string
	class      failure.Class
	at         time.Time
}

// NewCircuitBreaker returns a closed circuit breaker of a task queue.
func NewCircuitBreaker(lg *slog.Logger, cfg CircuitBreakerConfig, queue breakerControl) *CircuitBreaker {
	cfg.Failures = cmp.Or(cfg.Failures, 4)
	cfg.Reviews = cmp.Or(cfg.Reviews, 2)
	return &CircuitBreaker{lg: lg, cfg: cfg, queue: queue}
}

// Wait returns when an attempt may begin, or with the error of ctx.
func (b *CircuitBreaker) Wait(ctx context.Context) error {
	b.mu.Lock()
	closed := b.closed
	b.mu.Unlock()
	if closed == nil {
		return nil
	}
	select {
	case <-closed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RecordSuccess forgets the failures.
func (b *CircuitBreaker) RecordSuccess() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.failures = nil
}

// RecordFailure counts a failure, and opens the breaker if there are enough.
func (b *CircuitBreaker) RecordFailure(ctx context.Context, workflowID string, class failure.Class) {
	reason, outage := b.count(endpointFailure{workflowID, class, time.Now()})
	if !outage {
		return
	}
	b.lg.WarnContext(ctx, "endpoint fails for all reviews", "reason", reason)
	if err := b.queue.Open(ctx, reason); err != nil {
		b.lg.ErrorContext(ctx, "circuit breaker not opened", "error", err)
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed == nil {
		b.closed = make(chan struct{})
		go b.awaitClose(context.WithoutCancel(ctx))
	}
}

// awaitClose polls until the breaker is not open.
func (b *CircuitBreaker) awaitClose(ctx context.Context) {
	const interval = time.Second
	for open := true; open; {
		time.Sleep(interval)
		var err error
		if open, err = b.queue.IsOpen(ctx); err != nil {
			b.lg.WarnContext(ctx, "state of the circuit breaker unknown", "error", err)
			open = true // an attempt could not report to Temporal either
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.closed)
	b.closed = nil
}

// failureAge is how long a failure counts: the longest delay between attempts.
const failureAge = failure.DelayCeiling

// count adds f and reports whether the failures are an outage; it then forgets them.
func (b *CircuitBreaker) count(f endpointFailure) (reason string, outage bool) {
	if !f.class.BlamesEndpoint() && (b.cfg.IgnoreDenied || !isDenial(f.class)) {
		return "", false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.failures) > 0 && f.at.Sub(b.failures[0].at) > failureAge {
		b.failures = b.failures[1:]
	}
	b.failures = append(b.failures, f)
	reviews, denied := map[string]bool{}, map[string]bool{}
	unanswered := 0
	for _, one := range b.failures {
		reviews[one.workflowID] = true
		if one.class == failure.NetworkUnreachable || one.class == failure.DatabaseUnavailable {
			unanswered++
		}
		if isDenial(one.class) {
			denied[one.workflowID] = true
		}
	}
	several := len(reviews) >= b.cfg.Reviews && len(b.failures) >= b.cfg.Failures
	// Half: other processes may have run the other attempts of a review.
	silence := 2*unanswered >= b.cfg.Failures
	if !several && !silence && len(denied) < b.cfg.Reviews {
		return "", false
	}
	reason = fmt.Sprintf("consecutive failures: %d, reviews: %d, the last %s", len(b.failures), len(reviews), f.class)
	b.failures = nil
	return reason, true
}

func isDenial(c failure.Class) bool { return c == failure.AuthDenied || c == failure.QuotaExhausted }
