package activities_test

import (
	"context"
	"errors"
	"log/slog"
	"slices"
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

// set sets the limit and returns when the worker has read it.
func (q *fakeQueue) set(phase activities.Phase, perSecond float32) {
	q.mu.Lock()
	q.limit = activities.BreakerOrder{By: "test", Reason: "r"}.Limit(phase, perSecond)
	if phase == "" {
		q.limit = activities.QueueLimit{}
	}
	q.mu.Unlock()
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

// Once two reviews have met rejected credentials, attempts wait until the workflow has
// decided, at most 5 s: each of them would be a dead letter.
func TestAttemptsWaitForTheDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		b := newBreaker(t, q, activities.BreakerRules{Reviews: 2})
		begin := func() (after time.Duration) {
			t.Helper()
			start := time.Now()
			if err := b.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			return time.Since(start)
		}
		b.RecordFailure("a", failure.AuthDenied)
		if waited := begin(); waited != 0 {
			t.Errorf("waited %s after one review", waited)
		}
		b.RecordFailure("b", failure.AuthDenied)
		if waited := begin(); waited < 4*time.Second || waited > 6*time.Second {
			t.Errorf("waited %s for a workflow that does not decide, want 5 s", waited)
		}
		b.RecordFailure("c", failure.AuthDenied)
		b.RecordFailure("d", failure.AuthDenied)
		q.set(activities.PhaseOpen, 0)
		time.AfterFunc(time.Minute, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.limit = activities.QueueLimit{}
		})
		if waited := begin(); waited < time.Minute || waited > time.Minute+2*time.Second {
			t.Errorf("waited %s while the breaker was open for a minute", waited)
		}
	})
}

// A worker reports failures at once, but at most once per second, and successes seldom
// unless a breaker limits the queue. Nothing is lost.
func TestReportsAreFew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{err: errors.New("no Temporal")}
		b := newBreaker(t, q, activities.BreakerRules{})
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
		b := newBreaker(t, q, activities.BreakerRules{})
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
