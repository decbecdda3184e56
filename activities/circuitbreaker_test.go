package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
)

// A fakeQueue has a circuit breaker that keeps the reports.
type fakeQueue struct {
	mu      sync.Mutex
	running bool
	limit   activities.QueueLimit
	err     error
	reports []activities.Results
}

func (q *fakeQueue) Report(_ context.Context, r activities.Results, start bool) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return false, q.err
	}
	q.running = q.running || start
	q.reports = append(q.reports, r)
	return q.running, nil
}

func (q *fakeQueue) Limit(context.Context) (activities.QueueLimit, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.limit, q.err
}

func (q *fakeQueue) put(phase activities.Phase, perSecond float32) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limit = activities.BreakerOrder{By: "test", Reason: "r"}.Limit(phase, perSecond)
	if phase == "" {
		q.limit = activities.QueueLimit{}
	}
}

// set sets the limit and returns when the worker has read it.
func (q *fakeQueue) set(phase activities.Phase, perSecond float32) {
	q.put(phase, perSecond)
	time.Sleep(time.Second)
	synctest.Wait()
}

// total returns the sum of all reports, and their number.
func (q *fakeQueue) total() (sum activities.Results, n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, r := range q.reports {
		sum.Add(r)
	}
	return sum, len(q.reports)
}

// newBreaker runs the circuit breaker of a worker.
func newBreaker(t *testing.T, q *fakeQueue, rules activities.BreakerRules) *activities.CircuitBreaker {
	t.Helper()
	b := activities.NewCircuitBreaker(slog.New(slog.DiscardHandler), "worker", rules, q)
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { b.Run(ctx) })
	t.Cleanup(func() { stop(); running.Wait() })
	return b
}

// Results are sorted by what they say about the endpoint.
func TestResultsAreReported(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		class failure.Class
		rules activities.BreakerRules
		want  activities.Results
	}{
		"a success":                 {"", activities.BreakerRules{}, activities.Results{Succeeded: 1}},
		"an outage":                 {failure.UpstreamUnavailable, activities.BreakerRules{}, activities.Results{Failed: 1, Reviews: []string{"a"}}},
		"no answer":                 {failure.NetworkUnreachable, activities.BreakerRules{}, activities.Results{Failed: 1, NoAnswer: 1, Reviews: []string{"a"}}},
		"a refused rate":            {failure.RateLimited, activities.BreakerRules{}, activities.Results{Refused: 1}},
		"refused credentials":       {failure.AuthDenied, activities.BreakerRules{}, activities.Results{Denied: []string{"a"}}},
		"refusals that are ignored": {failure.AuthDenied, activities.BreakerRules{IgnoreDenied: true}, activities.Results{Other: 1}},
		"the change's own fault":    {failure.TooLarge, activities.BreakerRules{}, activities.Results{Other: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &fakeQueue{limit: activities.BreakerOrder{}.Limit(activities.PhaseThrottled, 1)}
				b := newBreaker(t, q, tt.rules)
				b.RecordFailure("z", failure.UpstreamUnavailable) // starts the breaker
				synctest.Wait()
				if err := b.Begin(t.Context()); err != nil {
					t.Fatal(err)
				}
				if tt.class == "" {
					b.RecordSuccess()
				} else {
					b.RecordFailure("a", tt.class)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				got := q.reports[len(q.reports)-1]
				want := tt.want
				if got.Begun != 1 || got.Succeeded != want.Succeeded || got.Failed != want.Failed || got.NoAnswer != want.NoAnswer || got.Refused != want.Refused ||
					got.Other != want.Other || !slices.Equal(got.Reviews, want.Reviews) || !slices.Equal(got.Denied, want.Denied) {
					t.Errorf("reported %+v, want %+v", got, want)
				}
			})
		})
	}
}

var outageRules = activities.BreakerRules{Failures: 4, Reviews: 2, Ratio: 0.5, Window: 20}

// Once the results of this process show an outage, its attempts wait until the workflow has
// decided, at most 10 s: each of them would fail, or be a dead letter.
func TestAttemptsWaitForTheDecision(t *testing.T) {
	t.Parallel()
	const limit = 10 * time.Second
	down, away, denied := failure.UpstreamUnavailable, failure.NetworkUnreachable, failure.AuthDenied
	ok := failure.Class("")
	for name, tt := range map[string]struct {
		results []failure.Class // one per review and second
		waits   bool
	}{
		"four failures":                      {[]failure.Class{down, down, down, down}, true},
		"three failures":                     {[]failure.Class{down, down, down}, false},
		"more successes than failures":       {[]failure.Class{ok, ok, ok, ok, ok, down, down, down, down}, false},
		"an outage after many successes":     {append(slices.Repeat([]failure.Class{ok}, 100), slices.Repeat([]failure.Class{down}, 20)...), true},
		"an endpoint that does not respond":  {[]failure.Class{away, away}, true},
		"two reviews with a rejected key":    {[]failure.Class{denied, denied}, true},
		"one review with a rejected key":     {[]failure.Class{denied}, false},
		"failures of the change, not others": {[]failure.Class{failure.TooLarge, failure.TooLarge, failure.TooLarge, failure.TooLarge}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				q := &fakeQueue{}
				b := newBreaker(t, q, outageRules)
				begin := func() (after time.Duration) {
					t.Helper()
					start := time.Now()
					if err := b.Begin(t.Context()); err != nil {
						t.Fatal(err)
					}
					return time.Since(start)
				}
				for i, class := range tt.results {
					time.Sleep(time.Second)
					if class == ok {
						b.RecordSuccess()
					} else {
						b.RecordFailure(strconv.Itoa(i), class)
					}
				}
				if waited := begin(); (waited >= limit-time.Second) != tt.waits || waited > limit+time.Second {
					t.Errorf("waited %s for a workflow that does not decide", waited)
				}
				if !tt.waits {
					return
				}
				b.RecordFailure("z", tt.results[len(tt.results)-1])
				q.set(activities.PhaseOpen, 0)
				time.AfterFunc(time.Minute, func() { q.put("", 0) })
				if waited := begin(); waited < time.Minute || waited > time.Minute+2*time.Second {
					t.Errorf("waited %s while the breaker was open for a minute", waited)
				}
				b.RecordFailure("y", down)
				if waited := begin(); waited != 0 {
					t.Errorf("waited %s for one failure after the outage", waited)
				}
			})
		})
	}
}

// A worker reports failures at once, but at most once per second, and successes seldom
// unless a breaker limits the queue. Nothing is lost.
func TestReportsAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{err: errors.New("no Temporal")}
		b := newBreaker(t, q, outageRules)
		for range 100 { // 10 s
			b.RecordFailure("a", failure.UpstreamUnavailable)
			time.Sleep(100 * time.Millisecond)
			q.mu.Lock()
			q.err = nil
			q.mu.Unlock()
		}
		synctest.Wait()
		if sum, n := q.total(); sum.Failed < 90 || n < 9 || n > 11 {
			t.Errorf("%d failures in %d reports, want 100 in 10", sum.Failed, n)
		}
		for range 600 { // 60 s
			b.RecordSuccess()
			time.Sleep(100 * time.Millisecond)
		}
		synctest.Wait()
		if sum, n := q.total(); sum.Failed != 100 || sum.Succeeded < 500 || n > 11+7 {
			t.Errorf("%d failures and %d successes in %d reports, want 6 more", sum.Failed, sum.Succeeded, n)
		}
	})
}

// Attempts that were dispatched to this process before the queue stopped wait, and begin
// step by step.
func TestAttemptsWaitWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		b := newBreaker(t, q, outageRules)
		b.RecordFailure("a", failure.UpstreamUnavailable)
		q.set(activities.PhaseThrottled, 1)
		b.RecordFailure("a", failure.UpstreamUnavailable)
		q.set(activities.PhaseOpen, 0)
		var mu sync.Mutex
		begun := 0
		for range 10 {
			go func() {
				if b.Begin(t.Context()) == nil {
					mu.Lock()
					begun++
					mu.Unlock()
				}
			}()
		}
		for _, step := range []struct {
			phase activities.Phase
			rate  float32
			want  int
		}{{activities.PhaseOpen, 0, 0}, {activities.PhaseHalfOpen, 2, 2}, {activities.PhaseHalfOpen, 0, 2}, {activities.PhaseHalfOpen, 4, 6}, {"", 0, 10}} {
			q.set(step.phase, step.rate)
			mu.Lock()
			if begun != step.want {
				t.Errorf("%d attempts have begun in phase %q with %g per second, want %d", begun, step.phase, step.rate, step.want)
			}
			mu.Unlock()
		}
		if sum, _ := q.total(); sum.Begun > 10 {
			t.Errorf("%d attempts were reported", sum.Begun)
		}
	})
}
