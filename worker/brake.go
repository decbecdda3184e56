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

// alarm makes the alarm that brakes a task queue (docs/brake.md), nil if only
// people brake.
func (p *plant) alarm(l line) *activities.Alarm {
	if p.cfg.Brake.ByHandOnly {
		return nil
	}
	return activities.NewAlarm(p.lg, activities.AlarmConfig{
		Failures: p.cfg.Brake.Failures, Reviews: p.cfg.Brake.Reviews, IgnoreDenied: p.cfg.Brake.IgnoreDenied || l.blind,
	}, queueBrake{p.namespace, l.queue})
}

// A queueBrake is the brake of one task queue.
type queueBrake struct {
	namespace temporalns.Namespace
	queue     string
}

// patience bounds one question to Temporal.
const patience = 10 * time.Second

func (b queueBrake) Pull(ctx context.Context, reason string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return b.namespace.Brake(ctx, b.queue, activities.BrakeOrder{By: workerName(), Reason: reason})
}

func (b queueBrake) On(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	state, err := b.namespace.BrakeOf(ctx, b.queue)
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
