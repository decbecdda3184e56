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

// alarm makes the alarm that breakers a task queue (docs/breaker.md), nil if only
// people breaker.
func (p *plant) alarm(l line) *activities.CircuitBreaker {
	if p.cfg.Breaker.ByHandOnly {
		return nil
	}
	return activities.NewCircuitBreaker(p.lg, activities.CircuitBreakerConfig{
		Failures: p.cfg.Breaker.Failures, Reviews: p.cfg.Breaker.Reviews, IgnoreDenied: p.cfg.Breaker.IgnoreDenied || l.blind,
	}, queueBreaker{p.namespace, l.queue})
}

// A queueBreaker is the breaker of one task queue.
type queueBreaker struct {
	namespace temporalns.Namespace
	queue     string
}

// patience bounds one question to Temporal.
const patience = 10 * time.Second

func (b queueBreaker) Pull(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return b.namespace.OpenBreaker(ctx, b.queue, activities.BreakerOrder{By: workerName(), Reason: reason})
}

func (b queueBreaker) On(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := b.namespace.BreakerOf(ctx, b.queue)
	return state.Running && !state.Easing(), err
}

// workerName is how an order names the worker that gave it.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("worker %d on %s", os.Getpid(), host)
}

// prober makes the worker that probes what a braked queue talks to, the
// database included. It is patient: whatever a probe meets, another follows.
func (p *plant) prober(l line, db *store.DB) worker.Worker {
	w := worker.New(p.namespace.Client, activities.ProbeQueue(l.queue), worker.Options{
		Interceptors:                     []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: p.scrub, Patient: true}},
		DisableWorkflowWorker:            true,
		MaxConcurrentActivityTaskPollers: 1,
	})
	w.RegisterActivity(&activities.Probing{Endpoint: func(ctx context.Context) error {
		if err := db.CheckSchema(ctx); err != nil || l.ping == nil {
			return err
		}
		return l.ping(ctx)
	}})
	return w
}
