package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"time"

	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/internal/breaker"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

// longestCall is how long a circuit breaker waits for the calls in flight of the worker that
// it stops. It is the longest timeout of an attempt.
const longestCall = time.Hour

// recordTimeout limits one record of an outage: Postgres may be what is down.
const recordTimeout = 10 * time.Second

// newBreaker makes the circuit breaker of a task queue and its workers (docs/runbook.md).
func (r *runtime) newBreaker(ctx context.Context, s role, q queue, db *store.DB) *breaker.Breaker {
	stage := contract.StageOf(q.name)
	lg := r.lg.With("queue", q.name)
	attempts := r.interceptor(s)
	attempts.Stopping = ctx.Done()
	b := breaker.New(breaker.Config{
		Log: lg, Scrub: r.scrub,
		Worker: func(oneSlot bool) breaker.Worker {
			options := r.options(s, attempts)
			options.WorkerStopTimeout = longestCall
			if oneSlot {
				options.MaxConcurrentActivityExecutionSize = 1
			}
			w := worker.New(r.namespace.Client, q.name, options)
			w.RegisterActivity(q.activities)
			return w
		},
		Probe: func(ctx context.Context) error {
			if err := db.CheckSchema(ctx); err != nil || q.ping == nil {
				return err
			}
			return q.ping(ctx)
		},
		Pause: func(n int) time.Duration { return failure.Backoff(n, rand.Float64(), 0) },
		Record: func(ctx context.Context, o *breaker.Outage) {
			ctx, cancel := context.WithTimeout(ctx, recordTimeout)
			defer cancel()
			var err error
			if o == nil {
				err = db.DeleteOutage(ctx, stage, workerName())
			} else {
				err = db.SaveOutage(ctx, store.Outage{
					Stage: stage, Worker: workerName(), Since: o.Since, HalfOpen: o.HalfOpen, ErrorClass: o.Class, Reason: o.Reason,
				})
			}
			if err != nil {
				lg.WarnContext(ctx, "outage not recorded", "error", err)
			}
		},
	})
	attempts.Breaker = b
	r.breakers[q.name] = b
	return b
}

// breakerReadings reads which circuit breakers of this process are open.
func (r *runtime) breakerReadings(context.Context) ([]telemetry.Sample, error) {
	var readings []telemetry.Sample
	for queue, b := range r.breakers {
		open := 0.0
		if o := b.Outage(); o != nil && !o.HalfOpen {
			open = 1
		}
		readings = append(readings, telemetry.Sample{Name: "criticizer_breaker_open", Labels: map[string]string{"queue": queue}, Value: open})
	}
	return readings, nil
}

// workerName identifies this process to operators.
func workerName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("worker %d on %s", os.Getpid(), host)
}
