package activities_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/internal/testkit"
)

// A fakeQueue has a circuit breaker that keeps the reports.
type fakeQueue struct {
	mu      sync.Mutex
	running bool
	limit   activities.QueueLimit
	err     error
	reports []activities.Results
}

func (q *fakeQueue) Report(ctx context.Context, r activities.Results, start bool) (bool, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := cmp.Or(ctx.Err(), q.err); err != nil {
		return start, err
	}
	q.running = q.running || start
	q.reports = append(q.reports, r)
	return q.running, nil
}

func (q *fakeQueue) Limit(ctx context.Context) (activities.QueueLimit, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := cmp.Or(ctx.Err(), q.err); err != nil {
		return activities.QueueLimit{}, err
	}
	return q.limit, nil
}

func (q *fakeQueue) put(phase activities.Phase, perSecond float32) {
	limit := activities.BreakerOrder{By: "test", Reason: "r"}.Limit(phase, perSecond)
	if phase == "" {
		limit = activities.QueueLimit{}
	}
	q.putLimit(limit)
}

func (q *fakeQueue) putLimit(limit activities.QueueLimit) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if limit.PerSecond != nil {
		limit.Since = time.Now()
	}
	q.limit = limit
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

// newBreaker runs the circuit breaker of a worker, which logs to log.
func newBreaker(t *testing.T, q *fakeQueue, rules activities.BreakerRules, log io.Writer) *activities.CircuitBreaker {
	t.Helper()
	b := activities.NewCircuitBreaker(slog.New(slog.NewTextHandler(log, nil)), "worker", rules, q)
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
				b := newBreaker(t, q, tt.rules, io.Discard)
				b.RecordFailure("z", failure.UpstreamUnavailable) // starts the breaker
				synctest.Wait()
				testkit.NoError(t, b.Begin(t.Context()))
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

// A full window of successes does not outweigh the failures after it.
func TestAttemptsWaitAfterAFullWindow(t *testing.T) {
	t.Parallel()
	for successes, waits := range map[int]bool{20: true, 19: false} {
		synctest.Test(t, func(t *testing.T) {
			b := newBreaker(t, &fakeQueue{}, outageRules, io.Discard)
			for range successes {
				b.RecordSuccess()
			}
			for i := range 4 {
				b.RecordFailure(strconv.Itoa(i), failure.UpstreamUnavailable)
			}
			start := time.Now()
			if err := b.Begin(t.Context()); err != nil || (time.Since(start) > 0) != waits {
				t.Errorf("four failures after %d successes: waited %s, %v", successes, time.Since(start), err)
			}
		})
	}
}

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
				b := newBreaker(t, q, outageRules, io.Discard)
				begin := func() (after time.Duration) {
					t.Helper()
					start := time.Now()
					testkit.NoError(t, b.Begin(t.Context()))
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
		q, log := &fakeQueue{err: errors.New("no Temporal")}, new(bytes.Buffer)
		b := newBreaker(t, q, outageRules, log)
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
		if warnings := strings.Count(log.String(), "circuit breaker not reached"); warnings != 1 {
			t.Errorf("%d warnings, want one for the report that failed:\n%s", warnings, log)
		}
	})
}

// Only a failure starts the workflow.
func TestSuccessesStartNoBreaker(t *testing.T) {
	t.Parallel()
	for class, starts := range map[failure.Class]bool{"": false, failure.TooLarge: false, failure.UpstreamUnavailable: true, failure.RateLimited: true} {
		synctest.Test(t, func(t *testing.T) {
			q := &fakeQueue{}
			b := newBreaker(t, q, outageRules, io.Discard)
			b.RecordSuccess()
			if class != "" {
				b.RecordFailure("a", class)
			}
			time.Sleep(10 * time.Second)
			synctest.Wait()
			if sum, n := q.total(); n == 0 || sum.Succeeded != 1 || q.running != starts {
				t.Errorf("%d reports, with class %q started %t", n, class, q.running)
			}
		})
	}
}

// Attempts that were dispatched to this process before the queue stopped wait, and begin
// step by step.
func TestAttemptsWaitWhileTheBreakerIsOpen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &fakeQueue{}
		b := newBreaker(t, q, outageRules, io.Discard)
		b.RecordFailure("a", failure.UpstreamUnavailable)
		q.set(activities.PhaseThrottled, 1)
		b.RecordFailure("a", failure.UpstreamUnavailable)
		q.set(activities.PhaseOpen, 0)
		_, reports := q.total()
		time.Sleep(time.Minute)
		if _, n := q.total(); n != reports {
			t.Errorf("%d reports while no attempt has begun or ended", n-reports)
		}
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

// The fake queue answers as the circuit breaker of a real task queue: a worker that a fake
// lets report or read more proves nothing.
func TestFakeQueueIsThatOfTemporal(t *testing.T) {
	t.Parallel()
	namespace, _ := temporalnstest.New(t)
	q := &fakeQueue{}
	got := exerciseQueue(t, q, func(l activities.QueueLimit) error { q.putLimit(l); return nil })
	want := exerciseQueue(t, realQueue{namespace}, func(l activities.QueueLimit) error { return namespace.LimitQueue(t.Context(), activities.QueueLLM, l) })
	for i := range want { // both have the same steps
		if got[i] != want[i] {
			t.Errorf("step %d of the fake is\n  %s, of Temporal\n  %s", i, got[i], want[i])
		}
	}
}

// A realQueue is a task queue of a Temporal namespace.
type realQueue struct {
	namespace interface {
		ReportResults(ctx context.Context, queue string, r activities.Results, start bool) (running bool, err error)
		LimitOf(ctx context.Context, queue string) (activities.QueueLimit, error)
	}
}

func (q realQueue) Report(ctx context.Context, r activities.Results, start bool) (bool, error) {
	return q.namespace.ReportResults(ctx, activities.QueueLLM, r, start)
}

func (q realQueue) Limit(ctx context.Context) (activities.QueueLimit, error) {
	return q.namespace.LimitOf(ctx, activities.QueueLLM)
}

// exerciseQueue lists what a queue answers before its circuit breaker runs, while it runs
// and sets limits, and to a worker that stops.
func exerciseQueue(t *testing.T, q interface {
	Report(ctx context.Context, r activities.Results, start bool) (bool, error)
	Limit(ctx context.Context) (activities.QueueLimit, error)
}, set func(activities.QueueLimit) error,
) (steps []string) {
	t.Helper()
	note := func(what string, err error, seen ...any) {
		steps = append(steps, fmt.Sprint(what, ": ", err != nil, seen))
	}
	limit := func(ctx context.Context, what string) {
		l, err := q.Limit(ctx)
		perSecond := float32(-1)
		if l.PerSecond != nil {
			perSecond = *l.PerSecond
		}
		note("limit "+what, err, perSecond, l.By, l.Why(), l.Phase(), l.NotClosed(), l.Stopped(), l.Since.IsZero())
	}
	report := func(ctx context.Context, what string, start bool) {
		running, err := q.Report(ctx, activities.Results{By: "worker", Failed: 1}, start)
		note("report "+what, err, running)
	}
	ctx := t.Context()
	stopped, stop := context.WithCancel(ctx)
	stop()
	limit(ctx, "of a new queue")
	report(ctx, "of a success", false)
	report(stopped, "of a failure at the worker's stop", true)
	report(ctx, "of a success after it", false)
	report(ctx, "of a failure", true)
	report(ctx, "of a success while the breaker runs", false)
	report(ctx, "of another failure", true)
	report(stopped, "of a success at the worker's stop", false)
	limit(ctx, "before the breaker's first")
	order := activities.BreakerOrder{By: "olga", Reason: "4 of 4 results failed"}
	for _, l := range []activities.QueueLimit{
		order.Limit(activities.PhaseThrottled, 2.5), order.Limit(activities.PhaseOpen, 0), order.Limit(activities.PhaseHalfOpen, 4),
		{PerSecond: new(float32(7)), By: "temporal", Reason: "an operator's"}, {},
	} {
		testkit.NoError(t, set(l))
		// For a moment a busy server answers with the limit before.
		for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(20 * time.Millisecond) {
			if now, err := q.Limit(ctx); err != nil || reflect.DeepEqual(now.PerSecond, l.PerSecond) {
				break
			}
		}
		limit(ctx, string(l.Phase()))
	}
	limit(stopped, "at the worker's stop")
	return steps
}
