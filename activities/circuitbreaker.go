package activities

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
)

// A CircuitBreaker counts how the attempts of one stage end in this process, and reports
// that to the circuit breaker of the task queue, a workflow, which decides for all
// workers. Temporal takes a moment to stop a task queue, so attempts that begin in this
// process while the breaker is open wait.
//
// Once the results of this process show an outage by the rules, its attempts wait for the
// decision of the workflow, which takes a second or two: meanwhile they would fail.
//
// While there are failures or a breaker runs, it sends at most one report per second,
// otherwise one in 10 seconds. It sends none without attempts.
type CircuitBreaker struct {
	lg    *slog.Logger
	rules BreakerRules
	queue breakerControl

	mu      sync.Mutex
	results Results       // since the last report
	seen    Results       // the last ones of this process, at most rules.Window
	phase   Phase         // as last read
	permits int           // attempts that may begin in phase half-open
	doubt   time.Time     // until then the workflow may be opening the breaker
	read    chan struct{} // closed when phase and permits were read again
	urgent  chan struct{} // has an element if there is a failure to report
}

// breakerControl is the circuit breaker of one task queue.
type breakerControl interface {
	// Report reports results of this worker. It starts the breaker if start is set;
	// running is false if none runs.
	Report(ctx context.Context, r Results, start bool) (running bool, err error)
	// Limit returns the limit of the queue.
	Limit(ctx context.Context) (QueueLimit, error)
}

// BreakerRules are the limits at which a circuit breaker opens. They are wire format.
type BreakerRules struct {
	Failures int     `json:"failures"` // smallest number of failures
	Reviews  int     `json:"reviews"`  // smallest number of reviews among them
	Ratio    float64 `json:"ratio"`    // smallest share of failures among the last Window results
	Window   int     `json:"window"`
	// IgnoreDenied ignores refused credentials and exhausted quota. Otherwise the
	// breaker opens when Reviews reviews met them, because each of these reviews is
	// dead-lettered at once.
	IgnoreDenied bool `json:"ignore_denied,omitempty"`
	// Pace is the time between two adjustments. Default: 10 s.
	Pace time.Duration `json:"pace,omitempty"`
}

// Results counts how attempts of a queue ended. It is wire format.
type Results struct {
	By        string        `json:"by,omitempty"` // the worker
	At        time.Time     `json:"at,omitzero"`  // when they were received
	Begun     int           `json:"begun,omitempty"`
	Succeeded int           `json:"succeeded,omitempty"`
	Failed    int           `json:"failed,omitempty"`     // by the endpoint's fault, Unanswered included
	NoAnswer  int           `json:"unanswered,omitempty"` // the endpoint did not respond at all
	Refused   int           `json:"refused,omitempty"`    // because of the rate (429)
	Other     int           `json:"other,omitempty"`      // neither success nor the endpoint's fault
	Last      failure.Class `json:"last,omitempty"`       // of the last failure
	// Reviews and Denied are some workflow IDs of failed reviews, and of those whose
	// credentials or quota the endpoint rejects.
	Reviews []string     `json:"reviews,omitempty"`
	Denied  []string     `json:"denied,omitempty"`
	Rules   BreakerRules `json:"rules,omitzero"`
}

// Bad is the number of results that blame the endpoint.
func (r Results) Bad() int { return r.Failed + r.Refused + len(r.Denied) }

// Decisive is the number of results that show whether the endpoint works.
func (r Results) Decisive() int { return r.Succeeded + r.Bad() }

// Add adds o to r.
func (r *Results) Add(o Results) {
	r.By, r.Rules = o.By, o.Rules
	r.Begun, r.Succeeded, r.Failed = r.Begun+o.Begun, r.Succeeded+o.Succeeded, r.Failed+o.Failed
	r.NoAnswer, r.Refused, r.Other = r.NoAnswer+o.NoAnswer, r.Refused+o.Refused, r.Other+o.Other
	if o.Last != "" {
		r.Last = o.Last
	}
	for _, id := range o.Reviews {
		r.Reviews = withReview(r.Reviews, id)
	}
	for _, id := range o.Denied {
		r.Denied = withReview(r.Denied, id)
	}
}

// withReview adds an ID to ids, up to 20: more do not change any decision.
func withReview(ids []string, id string) []string {
	if len(ids) >= 20 || slices.Contains(ids, id) {
		return ids
	}
	return append(ids, id)
}

// Outage reports whether the endpoint fails for all reviews: several failures of several
// reviews, as a share of all results. The failures of a single review count if the
// endpoint did not respond at all, because no change causes that: half as many are enough.
func (r Results) Outage() (reason string, is bool) {
	rules := r.Rules
	several := r.Failed > 0 && r.Failed >= rules.Failures && len(r.Reviews) >= rules.Reviews
	silence := r.NoAnswer > 0 && 2*r.NoAnswer >= rules.Failures
	share := float64(r.Failed) >= rules.Ratio*float64(r.Succeeded+r.Failed)
	denied := len(r.Denied) > 0 && len(r.Denied) >= rules.Reviews
	if !denied && !(share && (several || silence)) {
		return "", false
	}
	return fmt.Sprintf("%d of %d results failed, of %d reviews, the last %s", r.Bad(), r.Decisive(), len(r.Reviews)+len(r.Denied), r.Last), true
}

// decisionTime is how long attempts wait for the decision of the workflow.
const decisionTime = 10 * time.Second

// NewCircuitBreaker returns the circuit breaker of a task queue; by names this process.
func NewCircuitBreaker(lg *slog.Logger, by string, rules BreakerRules, queue breakerControl) *CircuitBreaker {
	return &CircuitBreaker{
		lg: lg, rules: rules, queue: queue,
		results: Results{By: by, Rules: rules}, read: make(chan struct{}), urgent: make(chan struct{}, 1),
	}
}

// Begin returns when an attempt may begin, or with the error of ctx.
func (b *CircuitBreaker) Begin(ctx context.Context) error {
	for {
		b.mu.Lock()
		hold := b.phase == PhaseOpen || b.phase == PhaseHalfOpen && b.permits <= 0 || b.phase != PhaseHalfOpen && b.inDoubt()
		read := b.read
		if !hold {
			b.permits--
			b.results.Begun++
		}
		b.mu.Unlock()
		if !hold {
			return nil
		}
		select {
		case <-read:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// inDoubt reports whether attempts wait for the decision of the workflow.
func (b *CircuitBreaker) inDoubt() bool { return time.Now().Before(b.doubt) }

// RecordSuccess counts an attempt that succeeded.
func (b *CircuitBreaker) RecordSuccess() { b.record(Results{Succeeded: 1}) }

// RecordFailure counts an attempt that failed.
func (b *CircuitBreaker) RecordFailure(workflowID string, class failure.Class) {
	r := Results{Last: class}
	switch denied := class == failure.AuthDenied || class == failure.QuotaExhausted; {
	case denied && !b.rules.IgnoreDenied:
		r.Denied = []string{workflowID}
	case class == failure.RateLimited:
		r.Refused = 1
	case class.BlamesEndpoint():
		r.Failed, r.Reviews = 1, []string{workflowID}
		if class == failure.NetworkUnreachable || class == failure.DatabaseUnavailable {
			r.NoAnswer = 1
		}
	default:
		r = Results{Other: 1}
	}
	b.record(r)
}

// record adds a result to the next report, and decides whether attempts wait.
func (b *CircuitBreaker) record(r Results) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r.By, r.Rules = b.results.By, b.rules
	b.results.Add(r)
	if _, outage := b.seen.Outage(); !outage && b.seen.Decisive() >= b.rules.Window {
		b.seen = Results{}
	}
	b.seen.Add(r)
	if r.Bad() == 0 {
		return
	}
	if _, outage := b.seen.Outage(); outage {
		b.doubt = time.Now().Add(decisionTime)
	}
	select {
	case b.urgent <- struct{}{}:
	default:
	}
}

// Run sends the reports until ctx ends.
func (b *CircuitBreaker) Run(ctx context.Context) {
	const often, seldom = time.Second, 9 * time.Second
	limited := false
	for {
		if !limited {
			select {
			case <-ctx.Done():
				return
			case <-b.urgent:
			case <-time.After(seldom):
			}
		}
		var err error
		if limited, err = b.report(ctx); err != nil {
			b.lg.WarnContext(ctx, "circuit breaker not reached", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(often):
		}
	}
}

// report sends the results and, while a breaker runs or may be opening, reads its phase.
// limited reports whether it limits the queue or may be about to.
func (b *CircuitBreaker) report(ctx context.Context) (limited bool, err error) {
	b.mu.Lock()
	r, running := b.results, b.phase != "" || b.inDoubt()
	b.results = Results{By: r.By, Rules: r.Rules}
	b.mu.Unlock()
	if r.Decisive() > 0 || running && r.Begun+r.Other > 0 {
		running, err = b.queue.Report(ctx, r, r.Bad() > 0)
	}
	reported := err == nil
	var limit QueueLimit
	if reported && running {
		limit, err = b.queue.Limit(ctx)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if !reported {
		r.Add(b.results)
		b.results = r
	}
	if err != nil {
		return running, err
	}
	if !running || limit.Phase() == PhaseOpen {
		b.seen = Results{}
	}
	b.phase, b.permits = limit.Phase(), 0
	if limit.PerSecond != nil {
		b.permits = int(math.Ceil(float64(*limit.PerSecond)))
	}
	close(b.read)
	b.read = make(chan struct{})
	return b.phase != "" || b.inDoubt(), nil
}
