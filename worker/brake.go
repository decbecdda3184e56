package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/namespace"
	"github.com/criticizer/criticizer/store"
)

// alarm makes the alarm that brakes the stage's task queue (docs/brake.md).
func (p *plant) alarm(s stage) *activities.Alarm {
	return activities.NewAlarm(p.lg, activities.AlarmConfig{
		Failures: p.cfg.Brake.Failures, Reviews: p.cfg.Brake.Reviews, IgnoreDenied: p.cfg.Brake.IgnoreDenied,
	}, queueBrake{p.namespace, s.queue})
}

// A queueBrake is the brake of one task queue.
type queueBrake struct {
	namespace namespace.Namespace
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

// prober makes the worker that probes what a braked stage talks to, the
// database included. It is patient: whatever a probe meets, another follows.
func (p *plant) prober(s stage, db *store.DB, ping func(context.Context) error) worker.Worker {
	w := worker.New(p.namespace.Client, activities.ProbeQueue(s.queue), worker.Options{
		Interceptors:                     []interceptor.WorkerInterceptor{&activities.Interceptor{Scrub: p.scrub, Patient: true}},
		DisableWorkflowWorker:            true,
		MaxConcurrentActivityTaskPollers: 1,
	})
	w.RegisterActivity(&activities.Probing{Endpoint: func(ctx context.Context) error {
		if err := db.CheckSchema(ctx); err != nil || ping == nil {
			return err
		}
		return ping(ctx)
	}})
	return w
}
