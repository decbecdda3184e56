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

// An CircuitBreaker watches how the attempts of one stage end in this process, and pulls
// the breaker when what the stage talks to fails for everyone: a row of failures
// of several reviews, with no success in between. A review that fails alone does
// that only where nobody answered at all, which no change can be blamed for.
//
// A task queue takes its time to stop, so from the pull on the alarm also keeps
// attempts that begin here waiting until the breaker is off.
type CircuitBreaker struct {
	lg      *slog.Logger
	cfg     CircuitBreakerConfig
	breaker breaker
	now     func() time.Time

	mu     sync.Mutex
	row    []strike      // failures since the last success, oldest first
	braked chan struct{} // closed when the breaker is off; nil if it is
}

// breaker stops a task queue.
type breaker interface {
	// Pull orders the breaker on, with a reason for people.
	Pull(ctx context.Context, reason string) error
	// On reports whether nothing may begin. It is so as soon as Pull returns.
	On(ctx context.Context) (bool, error)
}

// CircuitBreakerConfig says when an [CircuitBreaker] pulls the breaker.
type CircuitBreakerConfig struct {
	// Failures in a row that make an outage. Default: 4, for an attempt budget of 5.
	Failures int
	// Reviews that must be among them. Default: 2.
	Reviews int
	// IgnoreDenied leaves refused credentials and used-up quota out. Otherwise
	// they make an outage as soon as enough reviews met them, for each of those is
	// dead-lettered at once.
	IgnoreDenied bool
}

// A strike is one failure that speaks of the endpoint.
type strike struct {
	workflowID string
	class      failure.Class
	at         time.Time
}

// NewCircuitBreaker returns an alarm that pulls b.
func NewCircuitBreaker(lg *slog.Logger, cfg CircuitBreakerConfig, b breaker) *CircuitBreaker {
	cfg.Failures = cmp.Or(cfg.Failures, 4)
	cfg.Reviews = cmp.Or(cfg.Reviews, 2)
	return &CircuitBreaker{lg: lg, cfg: cfg, breaker: b, now: time.Now}
}

// Admit returns when an attempt may begin, or with the error of ctx.
func (a *CircuitBreaker) Admit(ctx context.Context) error {
	a.mu.Lock()
	braked := a.braked
	a.mu.Unlock()
	if braked == nil {
		return nil
	}
	select {
	case <-braked:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Succeeded ends the row of failures.
func (a *CircuitBreaker) Succeeded() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.row = nil
}

// Failed adds a failure, and pulls the breaker if that makes an outage.
func (a *CircuitBreaker) Failed(ctx context.Context, workflowID string, class failure.Class) {
	reason, outage := a.add(strike{workflowID, class, a.now()})
	if !outage {
		return
	}
	a.lg.WarnContext(ctx, "endpoint fails for everyone", "reason", reason)
	if err := a.breaker.Pull(ctx, reason); err != nil {
		a.lg.ErrorContext(ctx, "breaker could not be pulled", "error", err)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.braked == nil {
		a.braked = make(chan struct{})
		go a.admitAgain(context.WithoutCancel(ctx))
	}
}

// admitAgain waits until the breaker is off.
func (a *CircuitBreaker) admitAgain(ctx context.Context) {
	const interval = time.Second
	for on := true; on; {
		time.Sleep(interval)
		var err error
		if on, err = a.breaker.On(ctx); err != nil {
			a.lg.WarnContext(ctx, "breaker could not be looked at", "error", err)
			on = true // nor could an attempt report to Temporal now
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.braked)
	a.braked = nil
}

// forgetAfter is how long a failure counts: the longest wait between attempts.
const forgetAfter = failure.DelayCeiling

// add says whether s makes an outage; the row then begins anew.
func (a *CircuitBreaker) add(s strike) (reason string, outage bool) {
	if !blamesEndpoint(s.class) && (a.cfg.IgnoreDenied || !isDenial(s.class)) {
		return "", false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for len(a.row) > 0 && s.at.Sub(a.row[0].at) > forgetAfter {
		a.row = a.row[1:]
	}
	a.row = append(a.row, s)
	reviews, denied := map[string]bool{}, map[string]bool{}
	unanswered := 0
	for _, one := range a.row {
		reviews[one.workflowID] = true
		if nobodyAnswers(one.class) {
			unanswered++
		}
		if isDenial(one.class) {
			denied[one.workflowID] = true
		}
	}
	several := len(reviews) >= a.cfg.Reviews && len(a.row) >= a.cfg.Failures
	// Half: other processes may have the other attempts of a review.
	silence := 2*unanswered >= a.cfg.Failures
	if !several && !silence && len(denied) < a.cfg.Reviews {
		return "", false
	}
	reason = fmt.Sprintf("%d failures of %s in a row, the last %s", len(a.row), reviewsOf(len(reviews)), s.class)
	a.row = nil
	return reason, true
}

func reviewsOf(n int) string {
	if n == 1 {
		return "1 review"
	}
	return fmt.Sprintf("%d reviews", n)
}

// nobodyAnswers reports whether a failure says that nobody is there.
func nobodyAnswers(c failure.Class) bool {
	return c == failure.NetworkUnreachable || c == failure.DatabaseUnavailable
}

// blamesEndpoint reports whether a failure may be that of any review, whatever
// its change.
func blamesEndpoint(c failure.Class) bool {
	switch c {
	case failure.NetworkTimeout, failure.NetworkUnreachable, failure.UpstreamUnavailable, failure.UpstreamInternal,
		failure.DatabaseUnavailable, failure.RateLimited, failure.ServerBusy:
		return true
	}
	return false
}

func isDenial(c failure.Class) bool { return c == failure.AuthDenied || c == failure.QuotaExhausted }
