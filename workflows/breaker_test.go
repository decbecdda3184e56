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

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/temporalns/temporalnstest"
	"github.com/criticizer/criticizer/workflows"
)

// A breakerBench is a circuit breaker whose queue records its limits.
type breakerBench struct {
	*testsuite.TestWorkflowEnvironment
	mu     sync.Mutex
	limits []string
	probes int
	// endpoint answers each probe.
	endpoint func(probe int) error
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

// LimitQueue records the limit and who set it.
func (b *breakerBench) LimitQueue(_ context.Context, queue string, limit activities.QueueLimit) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	said := "free"
	if limit.PerSecond != nil {
		said = fmt.Sprintf("%g by %s", *limit.PerSecond, limit.By)
	}
	if queue != activities.QueueLLM {
		return fmt.Errorf("limit of %s", queue)
	}
	b.limits = append(b.limits, said)
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

// after sends a signal at a time after the first order.
func (b *breakerBench) after(d time.Duration, signal string, order any) {
	b.RegisterDelayedCallback(func() { b.SignalWorkflow(signal, order) }, d)
}

// run carries out order and returns how long the queue was limited.
func (b *breakerBench) run(order activities.BreakerOrder) (time.Duration, error) {
	b.after(0, workflows.SignalOpen, order)
	began := b.Now()
	b.ExecuteWorkflow(workflows.CircuitBreaker, activities.QueueLLM)
	return b.Now().Sub(began), b.GetWorkflowError()
}

var outage = activities.BreakerOrder{By: "worker", Reason: "4 failures of 2 reviews in a row"}

func TestBreakerStopsTheQueueUntilTheEndpointAnswers(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.endpoint = func(probe int) error {
		if probe < 9 {
			return failure.Errorf(failure.AuthDenied, "the key is refused")
		}
		return nil
	}
	took, err := b.run(outage)
	if want := []string{"0 by worker", "1 by worker", "free"}; err != nil || !slices.Equal(b.limits, want) {
		t.Errorf("limits = %v, ended with %v; want %v", b.limits, err, want)
	}
	// Full jitter waits at most 1+2+4+8+16+32+60+60 s between the probes.
	if b.probes != 9 || took < 11*time.Second || took > 4*time.Minute {
		t.Errorf("%d probes in %s", b.probes, took)
	}
}

// The probes of an endpoint that answers them and fails reviews get rarer.
func TestHalfOpenBreakerOpensAgain(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	for at := 5 * time.Second; at < 40*time.Second; at += 7 * time.Second {
		b.after(at, workflows.SignalOpen, outage)
	}
	took, err := b.run(outage)
	if n := len(b.limits); err != nil || n < 7 || b.limits[n-1] != "free" || b.limits[2] != "0 by worker" {
		t.Errorf("limits = %v, ended with %v", b.limits, err)
	}
	if took > 2*time.Minute {
		t.Errorf("took %s", took)
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
	five := float32(5)
	limited := activities.QueueLimit{PerSecond: &five, By: "bob"}
	stopped := activities.QueueLimit{PerSecond: new(float32), By: "bob"}
	tests := map[string]struct {
		order       func(*breakerBench) activities.BreakerOrder
		signals     func(*breakerBench)
		least, most time.Duration
		want        []string
		probed      bool
	}{
		"for a time": {
			timed, func(*breakerBench) {}, 10 * time.Minute, 11 * time.Minute,
			[]string{"0 by ann", "1 by ann", "free"}, false,
		},
		"until it is released": {
			func(*breakerBench) activities.BreakerOrder { return person },
			func(b *breakerBench) { b.after(5*time.Hour, workflows.SignalClose, nil) }, 5 * time.Hour, 6 * time.Hour,
			[]string{"0 by ann", "1 by ann", "free"}, false,
		},
		"workers' orders change nothing": {
			timed, func(b *breakerBench) { b.after(time.Minute, workflows.SignalOpen, outage) }, 10 * time.Minute, 11 * time.Minute,
			[]string{"0 by ann", "1 by ann", "free"}, false,
		},
		"a person takes over from a worker": {
			func(*breakerBench) activities.BreakerOrder { return outage },
			func(b *breakerBench) {
				b.endpoint = func(int) error { return errors.New("down") }
				b.after(time.Minute, workflows.SignalOpen, person)
				b.after(time.Hour, workflows.SignalClose, nil)
			}, time.Hour, 2 * time.Hour,
			[]string{"0 by worker", "0 by ann", "1 by ann", "free"}, true,
		},
		"an earlier limit comes back": {
			func(b *breakerBench) activities.BreakerOrder {
				order := timed(b)
				order.Before = limited
				return order
			}, func(*breakerBench) {}, 10 * time.Minute, 11 * time.Minute,
			[]string{"0 by ann", "1 by ann", "5 by bob"}, false,
		},
		"a queue that a person has stopped is left alone": {
			func(*breakerBench) activities.BreakerOrder {
				order := outage
				order.Before = stopped
				return order
			}, func(*breakerBench) {}, 0, time.Second, nil, false,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBreakerBench()
			tt.signals(b)
			took, err := b.run(tt.order(b))
			if err != nil || !slices.Equal(b.limits, tt.want) {
				t.Errorf("limits = %v, ended with %v; want %v", b.limits, err, tt.want)
			}
			if took < tt.least || took > tt.most || b.probes > 0 != tt.probed {
				t.Errorf("took %s and %d probes", took, b.probes)
			}
		})
	}
}

// Canceling the workflow in the UI must not leave the queue stopped.
func TestCanceledBreakerRestoresTheLimit(t *testing.T) {
	t.Parallel()
	b := newBreakerBench()
	b.endpoint = func(int) error { return errors.New("down") }
	b.RegisterDelayedCallback(b.CancelWorkflow, time.Minute)
	_, err := b.run(outage)
	if want := []string{"0 by worker", "free"}; !temporal.IsCanceledError(err) || !slices.Equal(b.limits, want) {
		t.Errorf("limits = %v, ended with %v; want %v", b.limits, err, want)
	}
}

func TestBreakerOnTheRealServer(t *testing.T) {
	t.Parallel()
	n, where := temporalnstest.New(t)
	c := cluster{n.Client, where.Name, nil}
	var probes atomic.Int32
	for queue, acts := range map[string]any{
		activities.QueueBookkeeping: &activities.Bookkeeping{Queues: n},
		activities.ProbeQueue(activities.QueueLLM): &activities.Probing{Endpoint: func(context.Context) error {
			if probes.Add(1) < 3 {
				return failure.Errorf(failure.UpstreamUnavailable, "down")
			}
			return nil
		}},
	} {
		w := worker.New(c.Client, queue, worker.Options{Interceptors: []interceptor.WorkerInterceptor{
			&activities.Interceptor{Scrub: func(s string) string { return s }, RetryAll: true},
		}})
		w.RegisterActivity(acts)
		w.RegisterWorkflow(workflows.CircuitBreaker)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(w.Stop)
	}
	if err := n.OpenBreaker(t.Context(), activities.QueueLLM, outage); err != nil {
		t.Fatal(err)
	}
	if state, err := n.BreakerOf(t.Context(), activities.QueueLLM); err != nil || !state.Running {
		t.Errorf("a breaker that has just opened is %+v, %v", state, err)
	}
	// An order that arrives while the breaker is half-open.
	deadline := time.Now().Add(30 * time.Second)
	for state, err := n.BreakerOf(t.Context(), activities.QueueLLM); !state.HalfOpen(); state, err = n.BreakerOf(t.Context(), activities.QueueLLM) {
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("the breaker is %+v, %v, want half-open", state, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err := n.OpenBreaker(t.Context(), activities.QueueLLM, outage); err != nil {
		t.Fatal(err)
	}
	if err := c.GetWorkflow(t.Context(), workflows.BreakerID(activities.QueueLLM), "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	c.keepRun(t, workflows.BreakerID(activities.QueueLLM), "breaker")
	if state, err := n.BreakerOf(t.Context(), activities.QueueLLM); err != nil || state.Running || state.Limit.PerSecond != nil || probes.Load() != 4 {
		t.Errorf("in the end the breaker is %+v after %d probes, %v", state, probes.Load(), err)
	}
}
