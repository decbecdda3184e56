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
func (r *runtime) newBreaker(ctx context.Context, q queue) *activities.CircuitBreaker {
	cfg := r.cfg.Breaker
	b := activities.NewCircuitBreaker(r.lg, workerName(), activities.BreakerRules{
		Failures: cfg.Failures, Reviews: cfg.Reviews, Ratio: cfg.FailureRatio, Window: cfg.Window,
		IgnoreDenied: cfg.IgnoreDenied || q.anonymousPing,
	}, queueBreaker{r.namespace, q.name})
	r.background(ctx, b.Run)
	return b
}

// A queueBreaker is the circuit breaker of one task queue.
type queueBreaker struct {
	namespace temporalns.Namespace
	queue     string
}

func (b queueBreaker) Report(ctx context.Context, r activities.Results, start bool) (running bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return b.namespace.ReportResults(ctx, b.queue, r, start)
}

func (b queueBreaker) Limit(ctx context.Context) (activities.QueueLimit, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return b.namespace.LimitOf(ctx, b.queue)
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
