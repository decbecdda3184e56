package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/store"
)

// requestTimeout limits one request to Temporal.
const requestTimeout = 10 * time.Second

// newBreaker makes the circuit breaker of a task queue (docs/breaker.md).
func (r *runtime) newBreaker(q queue) *activities.CircuitBreaker {
	return activities.NewCircuitBreaker(r.lg, activities.CircuitBreakerConfig{
		Failures: r.cfg.Breaker.Failures, Reviews: r.cfg.Breaker.Reviews, IgnoreDenied: r.cfg.Breaker.IgnoreDenied || q.anonymousPing,
	}, queueBreaker{r.namespace, q.name})
}

// A queueBreaker opens the circuit breaker of one task queue and reads its state.
type queueBreaker struct {
	namespace temporalns.Namespace
	queue     string
}

func (b queueBreaker) Open(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return b.namespace.OpenBreaker(ctx, b.queue, activities.BreakerOrder{By: workerName(), Reason: reason})
}

func (b queueBreaker) IsOpen(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	state, err := b.namespace.BreakerOf(ctx, b.queue)
	return state.Running && !state.HalfOpen(), err
}

// workerName identifies this process to operators.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("worker %d on %s", os.Getpid(), host)
}

// probeWorker makes the worker that probes the endpoint and the database of a
// queue whose circuit breaker is open. Every failed probe is retried.
func (r *runtime) probeWorker(q queue, db *store.DB) worker.Worker {
	w := worker.New(r.namespace.Client, activities.ProbeQueue(q.name), worker.Options{
		Interceptors:                     []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: r.scrub, RetryAll: true}},
		DisableWorkflowWorker:            true,
		MaxConcurrentActivityTaskPollers: 1,
	})
	w.RegisterActivity(&activities.Probing{Endpoint: func(ctx context.Context) error {
		if err := db.CheckSchema(ctx); err != nil || q.ping == nil {
			return err
		}
		return q.ping(ctx)
	}})
	return w
}
