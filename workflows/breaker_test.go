package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	sdkpb "go.temporal.io/api/sdk/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/workflows"
)

// A breakerBench is a circuit breaker whose queue records its limits.
type breakerBench struct {
	*testsuite.TestWorkflowEnvironment
	mu     sync.Mutex
	now    activities.QueueLimit
	limits []string
	probes int
	// endpoint answers each probe; onLimit reacts to each limit, with its number.
	endpoint func(probe int) error
	onLimit  func(number int, l activities.QueueLimit)
}

func newBreakerBench() *breakerBench {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(discard))
	b := &breakerBench{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	b.SetTestTimeout(30 * time.Second)
	b.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: true},
	}})
	b.RegisterWorkflow(workflows.CircuitBreaker)
	b.RegisterActivity(&activities.Bookkeeping{Queues: b})
	b.RegisterActivity(&activities.Probing{Endpoint: b.probe})
	return b
}

// LimitOf returns the last limit.
func (b *breakerBench) LimitOf(context.Context, string) (activities.QueueLimit, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.now, nil
}

// LimitQueue records the limit and who set it.
func (b *breakerBench) LimitQueue(_ context.Context, queue string, limit activities.QueueLimit) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := "free"
	if limit.PerSecond != nil {
		said = fmt.Sprintf("%.3g by %s", *limit.PerSecond, limit.By)
	}
	if phase := limit.Phase(); phase != "" {
		said = string(phase) + " " + said
	}
	if queue != activities.QueueLLM || len(limit.Reason) > 1000 {
		return fmt.Errorf("limit of %s for %q", queue, limit.Reason)
	}
	b.now, b.limits = limit, append(b.limits, said)
	if b.onLimit != nil {
		b.onLimit(len(b.limits), limit)
	}
	return nil
}

func (b *breakerBench) probe(context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.probes++
	if b.endpoint == nil {
		return nil
	}
	return b.endpoint(b.probes)
}

// down fails each probe, and the next one a minute later: the test environment, unlike a
// server, ends an activity after ten attempts.
func down(int) error {
	return &failure.Error{Class: failure.ServerBusy, Err: errors.New("down"), RetryAfter: time.Minute}
}

// after sends a signal at a time after the start.
func (b *breakerBench) after(d time.Duration, signal string, arg any) {
	b.RegisterDelayedCallback(func() { b.SignalWorkflow(signal, arg) }, d)
}

// report sends results of a worker now.
func (b *breakerBench) report(r activities.Results) {
	r.By, r.Rules = "worker", activities.BreakerRules{Failures: 4, Reviews: 2, Ratio: 0.5, Window: 20}
	b.SignalWorkflow(workflows.SignalResults, r)
}

// answer makes all activities of phase half-open succeed.
func (b *breakerBench) answer(_ int, l activities.QueueLimit) {
	if n := l.PerSecond; l.Phase() == activities.PhaseHalfOpen && *n > 0 {
		b.report(activities.Results{Begun: int(*n), Succeeded: int(*n)})
	}
}

// run starts the breaker with these reports, one per second, and returns how long it ran.
func (b *breakerBench) run(reports ...activities.Results) (time.Duration, error) {
	for i, r := range reports {
		b.RegisterDelayedCallback(func() { b.report(r) }, time.Duration(i)*time.Second)
	}
	began := b.Now()
	b.ExecuteWorkflow(workflows.CircuitBreaker, activities.QueueLLM, workflows.BreakerState{})
	return b.Now().Sub(began), b.GetWorkflowError()
}

func (b *breakerBench) wantLimits(t *testing.T, err error, want ...string) {
	t.Helper()
	if err != nil || !slices.Equal(b.limits, want) {
		t.Errorf("limits = %q, ended with %v\nwant     %q", b.limits, err, want)
	}
}

func failed(reviews ...string) activities.Results {
	return activities.Results{Begun: len(reviews), Failed: len(reviews), Reviews: reviews, Last: failure.UpstreamUnavailable}
}

// ramp are the limits of a half-open breaker whose activities all succeed.
var ramp = []string{"half-open 1 by worker", "half-open 2 by worker", "half-open 4 by worker", "half-open 8 by worker", "half-open 16 by worker", "free"}

// Failures open the breaker if they are a large part of the results of all workers.
func TestBreakerOpensOnAnOutage(t *testing.T) {
	t.Parallel()
	away := func(reviews ...string) activities.Results {
		r := failed(reviews...)
		r.NoAnswer = r.Failed
		return r
	}
	denied := func(reviews ...string) activities.Results {
		return activities.Results{Denied: reviews, Last: failure.AuthDenied}
	}
	worked := func(n int) activities.Results { return activities.Results{Begun: n, Succeeded: n} }
	for name, tt := range map[string]struct {
		reports []activities.Results
		want    bool
	}{
		"one failure each at four workers":    {[]activities.Results{failed("a"), failed("b"), failed("c"), failed("d")}, true},
		"three failures":                      {[]activities.Results{failed("a", "b", "c")}, false},
		"a review that fails alone":           {[]activities.Results{failed("a"), failed("a"), failed("a"), failed("a"), failed("a")}, false},
		"a review without a response":         {[]activities.Results{away("a"), away("a")}, true},
		"one time without a response":         {[]activities.Results{away("a"), failed("a"), failed("a")}, false},
		"as many successes":                   {[]activities.Results{worked(4), failed("a", "b"), failed("c", "d")}, true},
		"more successes":                      {[]activities.Results{worked(5), failed("a", "b"), failed("c", "d")}, false},
		"more successes, without a response":  {[]activities.Results{worked(5), away("a"), away("b")}, false},
		"the last results of many":            {[]activities.Results{worked(100), failed("a", "b", "c", "d"), worked(1), failed("e", "f", "g", "h", "i", "j", "k", "l", "m", "n", "o", "p", "q", "r", "s")}, true},
		"two reviews denied":                  {[]activities.Results{denied("a"), denied("b")}, true},
		"a review denied alone":               {[]activities.Results{denied("a"), denied("a")}, false},
		"a review denied and another failing": {[]activities.Results{denied("a"), failed("b")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBreakerBench()
			b.onLimit = b.answer
			_, err := b.run(tt.reports...)
			if tt.want {
				b.wantLimits(t, err, append([]string{"open 0 by worker"}, ramp...)...)
			} else {
				b.wantLimits(t, err)
			}
		})
	}
}

// Failures that are five minutes old are no outage.
func TestBreakerForgetsOldFailures(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	for i, review := range []string{"a", "b", "c", "d"} {
		for at := time.Duration(0); at <= failure.DelayCeiling; at += 50 * time.Second { // else its run ends
			b.RegisterDelayedCallback(func() { b.report(failed(review)) }, time.Duration(i)*(failure.DelayCeiling+time.Minute)+at)
		}
	}
	_, err := b.run(failed("a"))
	b.wantLimits(t, err)
}

// A report counts for less than five minutes.
func TestBreakerWindowOfTime(t *testing.T) {
	t.Parallel()
	for second, outage := range map[time.Duration]bool{failure.DelayCeiling - time.Second: true, failure.DelayCeiling: false} {
		b := newBreakerBench()
		b.onLimit = b.answer
		for at := 50 * time.Second; at < second; at += 50 * time.Second { // else its run ends
			b.RegisterDelayedCallback(func() { b.report(activities.Results{Denied: []string{"a"}, Last: failure.AuthDenied}) }, at)
		}
		b.RegisterDelayedCallback(func() { b.report(failed("c", "d")) }, second)
		_, err := b.run(failed("a", "b"))
		if opened := len(b.limits) > 0; err != nil || opened != outage {
			t.Errorf("two failures %s after two: limits = %q, ended with %v", second, b.limits, err)
		}
	}
}

// What happens while the breaker limits the queue decides what is next.
func TestBreakerHalfOpensByResults(t *testing.T) {
	t.Parallel()
	const never = 99
	stopped := []string{"open 0 by worker", "half-open 1 by worker", "half-open 0 by worker"} // when one has begun
	for name, tt := range map[string]struct {
		at     int                // the limit, by its number, after which
		report activities.Results // is reported,
		then   activities.Results // and this
		after  time.Duration      // later; 0: nothing
		works  int                // the other limits from which on all activities succeed

		want        []string
		least, most time.Duration
	}{
		"no activity is waiting": {
			works: never, want: []string{"open 0 by worker", "half-open 1 by worker", "free"}, least: 70 * time.Second, most: 80 * time.Second,
		},
		"slow activities": {
			at: 2, report: activities.Results{Begun: 2}, then: activities.Results{Succeeded: 1}, after: 3 * time.Minute, works: 4,
			want: append(slices.Clone(stopped), ramp[1:]...), least: 3 * time.Minute, most: 5 * time.Minute,
		},
		"an activity of five seconds": {
			at: 2, report: activities.Results{Begun: 1}, then: activities.Results{Succeeded: 1}, after: 5 * time.Second, works: 4,
			want: append(slices.Clone(stopped), ramp[1:]...), least: time.Minute, most: 2 * time.Minute,
		},
		"lost activities": {
			at: 2, report: activities.Results{Begun: 1}, works: 4,
			want: append(slices.Clone(stopped), ramp...), least: 5 * time.Minute, most: 7 * time.Minute,
		},
		"half of them fail": {
			at: 4, report: activities.Results{Begun: 4, Succeeded: 1, Failed: 2, Reviews: []string{"a"}},
			want: slices.Concat([]string{"open 0 by worker"}, ramp[:3], []string{"open 0 by worker"}, ramp), least: time.Minute, most: 3 * time.Minute,
		},
		"fewer than half of them fail": {
			at: 4, report: activities.Results{Begun: 4, Succeeded: 3, Failed: 1, Reviews: []string{"a"}},
			want: append([]string{"open 0 by worker"}, ramp...), least: time.Minute, most: 3 * time.Minute,
		},
		"it fails for reasons of the change": {
			at: 2, report: activities.Results{Begun: 1, Other: 1},
			want: append([]string{"open 0 by worker", "half-open 1 by worker"}, ramp...), least: time.Minute, most: 3 * time.Minute,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBreakerBench()
			b.onLimit = func(number int, l activities.QueueLimit) {
				switch {
				case number == tt.at:
					b.report(tt.report)
					if tt.then.By = "worker"; tt.after > 0 {
						b.after(tt.after, workflows.SignalResults, tt.then)
					}
				case number >= tt.works:
					b.answer(number, l)
				}
			}
			took, err := b.run(failed("a", "b", "c", "d"))
			b.wantLimits(t, err, tt.want...)
			if took < tt.least || took > tt.most {
				t.Errorf("took %s", took)
			}
		})
	}
}

// A breaker ends when an operator sets a limit, and leaves that alone.
func TestBreakerYieldsToAnOperator(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.onLimit = func(number int, _ activities.QueueLimit) {
		if number == 2 {
			b.now = activities.QueueLimit{PerSecond: new(float32(3)), By: "bob"}
			b.report(activities.Results{Begun: 1})
		}
	}
	took, err := b.run(failed("a", "b", "c", "d"))
	if b.wantLimits(t, err, "open 0 by worker", "half-open 1 by worker"); took > time.Minute {
		t.Errorf("took %s", took)
	}
}

// A refused rate is halved, then raised step by step; a queue whose every rate is refused
// stops.
func TestBreakerThrottles(t *testing.T) {
	t.Parallel()
	refused := activities.Results{Begun: 4, Succeeded: 3, Refused: 1, Last: failure.RateLimited}
	slow := activities.Results{Refused: 1, Last: failure.RateLimited}
	for name, tt := range map[string]struct {
		report   activities.Results
		refusals int
		want     []string
	}{
		"once":        {refused, 0, []string{"throttled 2 by worker", "throttled 2.4 by worker", "throttled 2.8 by worker", "throttled 3.2 by worker"}},
		"twice":       {refused, 1, []string{"throttled 2 by worker", "throttled 1 by worker", "throttled 1.4 by worker", "throttled 1.8 by worker"}},
		"lowest rate": {slow, 9, []string{"throttled 0.2 by worker", "throttled 0.1 by worker", "throttled 0.05 by worker", "open 0 by worker"}},
		"always": {refused, 9, []string{
			"throttled 2 by worker", "throttled 1 by worker", "throttled 0.5 by worker", "throttled 0.25 by worker",
			"throttled 0.125 by worker", "throttled 0.0625 by worker", "open 0 by worker",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBreakerBench()
			b.onLimit = func(number int, l activities.QueueLimit) {
				if l.Phase() == activities.PhaseThrottled && number <= tt.refusals {
					b.report(tt.report)
				}
			}
			_, err := b.run(tt.report)
			if n := len(b.limits); err != nil || n < len(tt.want) || !slices.Equal(b.limits[:len(tt.want)], tt.want) || b.limits[n-1] != "free" {
				t.Errorf("limits = %q, ended with %v\nwant first %q, and free in the end", b.limits, err, tt.want)
			}
		})
	}
}

// The first rate is half of that at which activities began.
func TestBreakerThrottlesByTime(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	worked := activities.Results{Begun: 2, Succeeded: 2}
	if _, err := b.run(worked, worked, worked, worked, activities.Results{Begun: 2, Refused: 2, Last: failure.RateLimited}); err != nil || len(b.limits) == 0 || b.limits[0] != "throttled 1.25 by worker" {
		t.Errorf("limits = %q, ended with %v; want first half of 10 in 4 s", b.limits, err)
	}
}

// The probes of an endpoint that fails them, or that answers them and fails reviews, get
// rarer.
func TestProbesGetRarer(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.endpoint = func(probe int) error {
		if probe < 9 {
			return failure.Errorf(failure.AuthDenied, "the key is refused")
		}
		return nil
	}
	b.onLimit = b.answer
	took, err := b.run(failed("a", "b", "c", "d"))
	b.wantLimits(t, err, append([]string{"open 0 by worker"}, ramp...)...)
	// Full jitter waits at most 1+2+4+8+16+32+60+60 s between the probes.
	if b.probes != 9 || took < 60*time.Second || took > 5*time.Minute {
		t.Errorf("%d probes in %s", b.probes, took)
	}

	b = newBreakerBench()
	opened := 0
	b.onLimit = func(number int, l activities.QueueLimit) {
		if l.Phase() == activities.PhaseOpen {
			opened++
		}
		if opened < 9 && l.Phase() == activities.PhaseHalfOpen {
			b.report(failed("a"))
		}
	}
	took, err = b.run(failed("a", "b", "c", "d"))
	if err != nil || opened != 9 || took < 90*time.Second {
		t.Errorf("opened %d times in %s, ended with %v", opened, took, err)
	}
}

// An outage after a recovery is probed as soon as the first one was: a breaker can run for
// days, because a failure per minute keeps it watching.
func TestProbesAfterARecoveryAreFrequent(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	opened, waits := 0, []time.Duration{}
	var at time.Time
	b.onLimit = func(number int, l activities.QueueLimit) {
		switch {
		case l.Phase() == activities.PhaseOpen && *l.PerSecond == 0:
			opened, at = opened+1, b.Now()
		case l.Phase() == activities.PhaseHalfOpen && !at.IsZero():
			waits, at = append(waits, b.Now().Sub(at)), time.Time{}
		}
		switch {
		case l.Phase() == activities.PhaseHalfOpen && opened < 5:
			b.report(failed("a"))
		case l.Phase() == "" && opened == 5:
			b.report(failed("a", "b", "c", "d"))
		default:
			b.answer(number, l)
		}
	}
	_, err := b.run(failed("a", "b", "c", "d"))
	if err != nil || len(waits) != 6 || waits[4] < 15*time.Second || waits[5] > 2*time.Second {
		t.Errorf("probed %v after the openings, ended with %v; want 16 s after the fifth failure, and 1 s after a recovery", waits, err)
	}
}

func TestManualBreaker(t *testing.T) {
	t.Parallel()
	person := activities.BreakerOrder{By: "ann", Reason: "maintenance", Manual: true}
	timed := func(b *breakerBench) activities.BreakerOrder {
		order := person
		order.Until = b.Now().Add(10 * time.Minute)
		return order
	}
	open := func(*breakerBench) activities.BreakerOrder { return person }
	half, outage := []string{"open 0 by ann", "half-open 1 by ann", "free"}, failed("a", "b", "c", "d")
	for name, tt := range map[string]struct {
		order       func(*breakerBench) activities.BreakerOrder
		before      activities.QueueLimit
		events      func(*breakerBench)
		least, most time.Duration
		want        []string
	}{
		"for a time": {order: timed, least: 10 * time.Minute, most: 12 * time.Minute, want: half},
		"until it is closed": {
			order: open, events: func(b *breakerBench) { b.after(5*time.Hour, workflows.SignalClose, nil) },
			least: 5 * time.Hour, most: 6 * time.Hour, want: half,
		},
		"workers' orders and results change nothing": {
			order: timed, events: func(b *breakerBench) {
				b.after(time.Minute, workflows.SignalOpen, activities.BreakerOrder{By: "worker", Reason: "of an older build"})
				b.RegisterDelayedCallback(func() { b.report(outage) }, time.Minute)
			}, least: 10 * time.Minute, most: 12 * time.Minute, want: half,
		},
		"a person takes over from a worker": {
			order: func(*breakerBench) activities.BreakerOrder { return activities.BreakerOrder{By: "worker"} },
			events: func(b *breakerBench) {
				b.endpoint = down
				b.after(time.Minute, workflows.SignalOpen, person)
				b.after(time.Hour, workflows.SignalClose, nil)
			}, least: time.Hour, most: 2 * time.Hour, want: append([]string{"open 0 by worker"}, half...),
		},
		// A worker's order must not inherit the fields of the person's before it.
		"a worker's order after a person's": {
			order: open, events: func(b *breakerBench) {
				b.after(time.Hour, workflows.SignalClose, nil)
				b.after(time.Hour+time.Second, workflows.SignalOpen, activities.BreakerOrder{By: "worker"})
			}, least: time.Hour, most: 2 * time.Hour,
			want: []string{"open 0 by ann", "half-open 1 by ann", "open 0 by worker", "half-open 1 by worker", "free"},
		},
		"a worker's order while the queue is freed": {
			order: timed, events: func(b *breakerBench) {
				b.onLimit = func(number int, _ activities.QueueLimit) {
					if number == 3 {
						b.SignalWorkflow(workflows.SignalOpen, activities.BreakerOrder{By: "worker"})
					}
				}
			}, least: 10 * time.Minute, most: 15 * time.Minute,
			want: append(slices.Clone(half), "open 0 by worker", "half-open 1 by worker", "free"),
		},
		"an operator's limit comes back": {
			order: timed, before: activities.QueueLimit{PerSecond: new(float32(0.5)), By: "bob", Reason: `"contract" <7>`},
			least: 10 * time.Minute, most: 12 * time.Minute,
			want: []string{"open 0 by ann", "half-open 0.5 by ann", "0.5 by bob"},
		},
		"a worker leaves a queue alone that a person has stopped": {
			order:  func(*breakerBench) activities.BreakerOrder { return activities.BreakerOrder{By: "worker"} },
			before: activities.QueueLimit{PerSecond: new(float32), By: "bob"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBreakerBench()
			b.now = tt.before
			b.after(0, workflows.SignalOpen, tt.order(b))
			if tt.events != nil {
				tt.events(b)
			}
			took, err := b.run()
			b.wantLimits(t, err, tt.want...)
			if took < tt.least || took > tt.most+time.Minute+time.Second {
				t.Errorf("took %s", took)
			}
		})
	}
}

// A breaker that has received nothing waits, and leaves the queue alone.
func TestBreakerWaitsForItsFirstSignal(t *testing.T) {
	t.Parallel()
	for signal, canceled := range map[string]bool{"": true, workflows.SignalClose: false, workflows.SignalOpen: false, workflows.SignalResults: false} {
		t.Run(signal, func(t *testing.T) {
			t.Parallel()
			b := newBreakerBench()
			b.RegisterDelayedCallback(b.CancelWorkflow, 24*time.Hour)
			switch signal {
			case workflows.SignalOpen:
				b.after(time.Hour, signal, activities.BreakerOrder{By: "worker"})
			case workflows.SignalResults:
				b.RegisterDelayedCallback(func() { b.report(failed("a")) }, time.Hour)
			case workflows.SignalClose:
				b.after(time.Hour, signal, nil)
			}
			took, err := b.run()
			if temporal.IsCanceledError(err) != canceled || !canceled && err != nil || took < time.Hour {
				t.Errorf("ended with %v after %s", err, took)
			}
			if len(b.limits) > 0 && signal != workflows.SignalOpen {
				t.Errorf("limits = %q", b.limits)
			}
		})
	}
}

// The Temporal UI shows who has opened the breaker, and why, while it is open.
func TestBreakerShowsItsState(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.endpoint = down
	var shown []string
	for _, d := range []time.Duration{500 * time.Millisecond, 10 * time.Second} {
		b.RegisterDelayedCallback(func() {
			var metadata sdkpb.WorkflowMetadata
			if value, err := b.QueryWorkflow("__temporal_workflow_metadata"); err != nil || value.Get(&metadata) != nil {
				t.Error("the workflow does not show its state:", err)
			}
			shown = append(shown, metadata.GetCurrentDetails())
		}, d)
	}
	b.RegisterDelayedCallback(b.CancelWorkflow, 20*time.Second)
	_, err := b.run(failed("a"), failed("a", "b", "c", "d"))
	want := []string{
		"Circuit breaker of task queue criticizer-llm is **closed: it watches the results**.",
		"Circuit breaker of task queue criticizer-llm is **open**. By worker: 5 of 5 results failed, of 4 reviews, the last UPSTREAM_UNAVAILABLE.",
	}
	if !temporal.IsCanceledError(err) || !slices.Equal(shown, want) {
		t.Errorf("details are %q, ended with %v\nwant %q", shown, err, want)
	}
}

// Canceling the workflow in the UI must not leave the queue stopped.
func TestCanceledBreakerRestoresTheLimit(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.endpoint = down
	b.RegisterDelayedCallback(b.CancelWorkflow, 10*time.Second)
	_, err := b.run(failed("a", "b", "c", "d"))
	if want := []string{"open 0 by worker", "free"}; !temporal.IsCanceledError(err) || !slices.Equal(b.limits, want) {
		t.Errorf("limits = %v, ended with %v; want %v", b.limits, err, want)
	}
}

// A long run continues as a new one between two steps, with the signals it has received.
func TestBreakerContinuesAsNew(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.onLimit = func(number int, l activities.QueueLimit) {
		if number == 3 {
			b.SetContinueAsNewSuggested(true)
		}
		b.answer(number, l)
	}
	_, err := b.run(failed("a", "b", "c", "d"))
	next, ok := errors.AsType[*workflow.ContinueAsNewError](err)
	if !ok {
		t.Fatalf("ended with %v, want a new run", err)
	}
	var queue string
	var state workflows.BreakerState
	testkit.NoError(t, converter.GetDefaultDataConverter().FromPayloads(next.Input, &queue, &state))
	again := newBreakerBench()
	again.now, again.onLimit = b.now, again.answer
	again.ExecuteWorkflow(workflows.CircuitBreaker, queue, state)
	again.wantLimits(t, again.GetWorkflowError(), ramp[2:]...)
}

// breakers is the namespace, which package workflows must not import.
type breakers interface {
	LimitOf(ctx context.Context, queue string) (activities.QueueLimit, error)
	LimitQueue(ctx context.Context, queue string, limit activities.QueueLimit) error
	OpenBreaker(ctx context.Context, queue string, order activities.BreakerOrder) error
	CloseBreaker(ctx context.Context, queue string) error
	ReportResults(ctx context.Context, queue string, r activities.Results, start bool) (bool, error)
}

// breakerServer is a circuit breaker on a real server.
type breakerServer struct {
	cluster
	n      breakers
	worker worker.Worker // of the breaker
	pace   time.Duration
}

// newBreakerServer serves probes with endpoint.
func newBreakerServer(t *testing.T, endpoint func(context.Context) error) *breakerServer {
	t.Helper()
	n, where := temporalnstest.New(t)
	s := &breakerServer{cluster: cluster{Client: n.Client, namespace: where.Name}, n: n, pace: 2 * time.Second}
	s.serve(t, activities.ProbeQueue(activities.QueueLLM), &activities.Probing{Endpoint: endpoint})
	return s
}

func (s *breakerServer) serve(t *testing.T, queue string, acts any) worker.Worker {
	t.Helper()
	w := worker.New(s.Client, queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: true},
	}})
	w.RegisterActivity(acts)
	w.RegisterWorkflow(workflows.CircuitBreaker)
	testkit.NoError(t, w.Start())
	t.Cleanup(w.Stop)
	return w
}

// report reports results, with a pace that is short for people and long for a busy machine.
func (s *breakerServer) report(t *testing.T, r activities.Results) {
	t.Helper()
	r.By = "worker"
	r.Rules = activities.BreakerRules{Failures: 4, Reviews: 2, Ratio: 0.5, Window: 20, Pace: s.pace}
	if _, err := s.n.ReportResults(t.Context(), activities.QueueLLM, r, true); err != nil {
		t.Fatal(err)
	}
}

// limited waits until the queue's limit has a phase; empty for none.
func (s *breakerServer) limited(t *testing.T, phase activities.Phase) {
	t.Helper()
	testkit.Eventually(t, "limit of phase "+string(phase), func() bool {
		limit, err := s.n.LimitOf(t.Context(), activities.QueueLLM)
		return err == nil && limit.Phase() == phase && (phase != "" || limit.PerSecond == nil)
	})
}

// A breaker ends with a free queue after any result of a canceled probe, and in any order in which
// signals, a cancellation and the worker come (the SDK fails workflow tasks that reuse the
// ID of an activity).
func TestBreakerSurvivesCanceledProbe(t *testing.T) {
	t.Parallel()
	outage := failed("a", "b", "c", "d")
	down := failure.Errorf(failure.UpstreamUnavailable, "down")
	for name, tt := range map[string]struct {
		probe func(ctx context.Context, release <-chan struct{}) error // the first one
		story func(t *testing.T, s *breakerServer, probing <-chan struct{}, release func())
	}{
		"the probe fails after the breaker was closed": {
			func(_ context.Context, release <-chan struct{}) error { <-release; return down }, closeAndReopen,
		},
		"the probe succeeds after the breaker was closed": {
			func(_ context.Context, release <-chan struct{}) error { <-release; return nil }, closeAndReopen,
		},
		"a person takes over for a second": {
			func(_ context.Context, release <-chan struct{}) error { <-release; return down },
			func(t *testing.T, s *breakerServer, probing <-chan struct{}, release func()) {
				began(t, probing)
				order := activities.BreakerOrder{By: "ann", Reason: "INC-7", Manual: true, Until: time.Now().Add(time.Second)}
				testkit.NoError(t, s.n.OpenBreaker(t.Context(), activities.QueueLLM, order))
				s.limited(t, activities.PhaseHalfOpen)
				release()
				s.report(t, outage)
			},
		},
		"canceled before its first task": {
			nil, func(t *testing.T, s *breakerServer, _ <-chan struct{}, _ func()) {
				s.worker.Stop()
				s.report(t, outage)
				s.cancel(t)
				s.worker = s.serve(t, activities.QueueBookkeeping, &activities.Bookkeeping{Queues: s.n})
			},
		},
		"closed and canceled without a worker": {
			func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
			func(t *testing.T, s *breakerServer, probing <-chan struct{}, _ func()) {
				s.report(t, outage)
				began(t, probing)
				s.worker.Stop()
				testkit.NoError(t, s.n.CloseBreaker(t.Context(), activities.QueueLLM))
				s.cancel(t)
				s.worker = s.serve(t, activities.QueueBookkeeping, &activities.Bookkeeping{Queues: s.n})
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probing, released := make(chan struct{}, 9), make(chan struct{})
			release := sync.OnceFunc(func() { close(released) })
			t.Cleanup(release)
			var probes atomic.Int32
			s := newBreakerServer(t, func(ctx context.Context) error {
				probing <- struct{}{}
				if probes.Add(1) > 1 || tt.probe == nil {
					return nil
				}
				return tt.probe(ctx, released)
			})
			s.worker = s.serve(t, activities.QueueBookkeeping, &activities.Bookkeeping{Queues: s.n})
			if tt.probe != nil {
				s.report(t, outage)
			}
			tt.story(t, s, probing, release)
			s.ends(t)
		})
	}
}

// closeAndReopen closes the breaker while a probe hangs; the endpoint fails again.
func closeAndReopen(t *testing.T, s *breakerServer, probing <-chan struct{}, release func()) {
	t.Helper()
	began(t, probing)
	testkit.NoError(t, s.n.CloseBreaker(t.Context(), activities.QueueLLM))
	s.limited(t, activities.PhaseHalfOpen)
	release()
	s.report(t, failed("a", "b", "c", "d"))
	began(t, probing) // that of the second opening
}

// began waits for a probe.
func began(t *testing.T, probing <-chan struct{}) {
	t.Helper()
	select {
	case <-probing:
	case <-time.After(time.Minute):
		t.Fatal("no probe")
	}
}

func (s *breakerServer) cancel(t *testing.T) {
	t.Helper()
	testkit.NoError(t, s.CancelWorkflow(t.Context(), workflows.BreakerID(activities.QueueLLM), ""))
}

// ends waits for the end of the breaker. No workflow task may fail, and the queue is free.
func (s *breakerServer) ends(t *testing.T) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	id := workflows.BreakerID(activities.QueueLLM)
	if err := s.GetWorkflow(ctx, id, "").Get(ctx, nil); err != nil && !temporal.IsCanceledError(err) {
		t.Errorf("the breaker ended with %v", err)
	}
	events := s.GetWorkflowHistory(t.Context(), id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		testkit.NoError(t, err)
		if failed := event.GetWorkflowTaskFailedEventAttributes(); failed != nil && failed.GetCause() != enumspb.WORKFLOW_TASK_FAILED_CAUSE_UNHANDLED_COMMAND {
			t.Errorf("event %d: %s", event.GetEventId(), failed.GetFailure().GetMessage())
		}
	}
	s.limited(t, "")
}

// On a real server: results of several workers open the breaker, a failed half-open round
// opens it again, and successes close it.
func TestBreakerOpensByResults(t *testing.T) {
	t.Parallel()
	var probes atomic.Int32
	s := newBreakerServer(t, func(context.Context) error { probes.Add(1); return nil })
	s.worker = s.serve(t, activities.QueueBookkeeping, &activities.Bookkeeping{Queues: s.n})
	s.pace = time.Minute
	bob := activities.QueueLimit{PerSecond: new(float32(50)), By: "bob", Reason: "contract"}
	testkit.NoError(t, s.n.LimitQueue(t.Context(), activities.QueueLLM, bob))
	for _, review := range []string{"a", "b", "c", "d"} {
		s.report(t, failed(review))
	}
	s.limited(t, activities.PhaseHalfOpen)
	s.report(t, failed("e"))
	s.limited(t, activities.PhaseOpen)
	for level := float32(1); level <= 16; level *= 2 {
		testkit.Eventually(t, fmt.Sprintf("limit %g", level), func() bool {
			limit, err := s.n.LimitOf(t.Context(), activities.QueueLLM)
			return err == nil && limit.Phase() == activities.PhaseHalfOpen && *limit.PerSecond == level
		})
		s.report(t, activities.Results{Begun: int(level), Succeeded: int(level)})
	}
	testkit.Eventually(t, "operator's limit", func() bool {
		limit, err := s.n.LimitOf(t.Context(), activities.QueueLLM)
		return err == nil && limit.Phase() == ""
	})
	testkit.NoError(t, s.n.CloseBreaker(t.Context(), activities.QueueLLM))
	id := workflows.BreakerID(activities.QueueLLM)
	testkit.NoError(t, s.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil))
	s.keepRun(t, id, "breaker")
	limit, err := s.n.LimitOf(t.Context(), activities.QueueLLM)
	if err != nil || limit.By != bob.By || limit.PerSecond == nil || *limit.PerSecond != *bob.PerSecond || probes.Load() != 2 {
		t.Errorf("in the end the limit is %+v after %d probes, %v", limit, probes.Load(), err)
	}
}
