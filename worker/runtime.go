package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/breaker"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/settings"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/internal/telemetry/traces"
	"github.com/criticizer/criticizer/internal/temporal"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/workflows/contract"
)

const (
	// reportTimeout is the time between the end of the grace period and the stop
	// of the worker: canceled attempts report to Temporal in it.
	reportTimeout = 4 * time.Second
	// flushTimeout limits the export of the last spans.
	flushTimeout = 2 * time.Second
)

// A runtime holds what the roles of one process share.
type runtime struct {
	cfg       *settings.Config
	lg        *slog.Logger
	scrubber  *redaction.Pipeline
	namespace temporal.Namespace
	metrics   *telemetry.Metrics          // nil without worker.listen
	breakers  map[string]*breaker.Breaker // by task queue; complete while serving is set
	closers   []func()

	// serving is set while all roles are served; databases is complete by then.
	serving   atomic.Bool
	databases []*store.DB
}

// newRuntime opens the log and connects to Temporal.
func newRuntime(ctx context.Context, cfg *settings.Config, logTo io.Writer) (*runtime, error) {
	// A random key: only the stages that seal and open changes use the configured one.
	scrubber, err := cfg.NewPipeline(secret.New(rand.Text()))
	if err != nil {
		return nil, err
	}
	r := &runtime{cfg: cfg, scrubber: scrubber, breakers: map[string]*breaker.Breaker{}}
	logging := cfg.Log
	logging.Scrub = r.scrub
	r.lg = telemetry.Logger(logTo, logging)
	if err := r.connect(ctx); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

// connect dials Temporal with traces and metrics.
func (r *runtime) connect(ctx context.Context) error {
	namespace := r.cfg.Temporal
	interceptors, flush, err := traces.Start(ctx, r.lg, "criticizer-worker", flushTimeout)
	if err != nil {
		return err
	}
	namespace.Interceptors = interceptors
	r.closers = append(r.closers, flush)
	if r.cfg.Worker.Listen != "" {
		if r.metrics, err = telemetry.NewMetrics(r.lg); err != nil {
			return err
		}
		namespace.Metrics = r.metrics.Handler()
		stop, err := telemetry.Serve(r.cfg.Worker.Listen, r.metrics, r.ready)
		if err != nil {
			return failure.Errorf(failure.ConfigInvalid, "worker.listen: %w", err)
		}
		r.closers = append(r.closers, stop)
	}
	r.namespace, err = temporal.Dial(ctx, sdkLogger{log.NewStructuredLogger(r.lg)}, namespace)
	if err == nil {
		r.closers = append(r.closers, r.namespace.Close)
	}
	return err
}

// scrub redacts text for the log and for the history of a workflow.
func (r *runtime) scrub(s string) string {
	text, err := r.scrubber.String(s)
	if err != nil {
		return "[withheld: not redactable]"
	}
	return text.String()
}

// ready reports why the worker cannot work, if it cannot.
func (r *runtime) ready(ctx context.Context) error {
	if !r.serving.Load() {
		return errors.New("the worker is starting or stopping")
	}
	if _, err := r.namespace.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return errors.New(r.scrub(fmt.Sprintf("reach Temporal: %v", err)))
	}
	for _, db := range r.databases {
		if err := db.CheckSchema(ctx); err != nil {
			return errors.New(r.scrub(fmt.Sprintf("query the database: %v", err)))
		}
	}
	return nil
}

// serve runs the workers of every role until ctx ends, and then waits for the
// attempts in flight.
func (r *runtime) serve(ctx context.Context, chosen []role) error {
	r.followSecrets(ctx, chosen)
	switch err := r.namespace.RegisterAttributes(ctx, contract.Attributes()...); {
	case temporal.IsDenied(err): // an administrator of Temporal Cloud has made them, or no review starts
		r.lg.WarnContext(ctx, "search attributes not checked", "error", r.scrub(err.Error()))
	case err != nil:
		return err
	}
	var running []breaker.Worker
	defer func() { r.stopAll(running) }()
	for _, s := range chosen {
		workers, err := r.workers(ctx, s)
		if err != nil {
			return fmt.Errorf("start role %s: %w", s.name, err)
		}
		for _, w := range workers {
			if err := w.Start(); err != nil {
				return fmt.Errorf("start role %s: %w", s.name, err)
			}
			running = append(running, w)
		}
	}
	if len(r.breakers) > 0 {
		r.addReadings("breakers", r.breakerReadings)
	}
	r.serving.Store(true)
	r.lg.InfoContext(ctx, "worker ready", "roles", len(chosen))
	if err := telemetry.NotifyReady(ctx, os.Getenv("NOTIFY_SOCKET")); err != nil {
		r.lg.WarnContext(ctx, "systemd not notified: it stops the worker at TimeoutStartSec; correct NotifyAccess= of the unit", "error", err.Error())
	}
	<-ctx.Done()
	r.serving.Store(false)
	r.lg.InfoContext(ctx, "worker stopping")
	return nil
}

// stopAll stops the workers in parallel, so that all have the same grace period. It does not
// wait for an attempt that ignores its end.
func (r *runtime) stopAll(workers []breaker.Worker) {
	stopped := make(chan struct{})
	var stopping sync.WaitGroup
	for _, w := range workers {
		stopping.Go(w.Stop)
	}
	go func() { stopping.Wait(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(r.cfg.Worker.StopGrace + reportTimeout):
	}
}

// workers makes the workers of a role, one for each task queue.
func (r *runtime) workers(ctx context.Context, s role) ([]breaker.Worker, error) {
	db, err := store.Open(ctx, r.lg, r.cfg.DatabaseConfig(), s.name.Database())
	if err != nil {
		return nil, err
	}
	r.closers = append(r.closers, db.Close)
	if err := db.CheckSchema(ctx); err != nil {
		return nil, err
	}
	r.databases = append(r.databases, db)
	queues, err := s.build(ctx, r, db)
	if err != nil {
		return nil, err
	}
	var workers []breaker.Worker
	for _, q := range queues {
		if !r.cfg.Worker.NoBreaker && contract.HasBreaker(q.name) {
			workers = append(workers, r.newBreaker(ctx, s, q, db))
			continue
		}
		w := worker.New(r.namespace.Client, q.name, r.options(s, r.interceptor(s)))
		w.RegisterActivity(q.activities)
		if s.workflows != nil {
			s.workflows(w)
		}
		workers = append(workers, w)
	}
	return workers, nil
}

func (r *runtime) interceptor(s role) *activities.Interceptor {
	return &activities.Interceptor{Scrub: r.scrub, Log: r.lg, RetryAll: s.retryAll, Grace: r.cfg.Worker.StopGrace}
}

// options are the options of a role's workers.
func (r *runtime) options(s role, attempts *activities.Interceptor) worker.Options {
	return worker.Options{
		Interceptors:                       []interceptor.WorkerInterceptor{attempts},
		DisableWorkflowWorker:              s.workflows == nil,
		WorkerStopTimeout:                  r.cfg.Worker.StopGrace + reportTimeout,
		TaskQueueActivitiesPerSecond:       s.rate,
		MaxConcurrentActivityExecutionSize: s.atOnce,
	}
}

// artifacts opens one namespace of the artifact store.
func (r *runtime) artifacts(db *store.DB, ns review.Namespace) (*artifact.Store, error) {
	return artifact.New(db.Blobs(ns), r.cfg.ArtifactConfig(ns))
}

// background runs f until the runtime is closed.
func (r *runtime) background(ctx context.Context, f func(context.Context)) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { f(ctx) })
	r.closers = append(r.closers, func() { stop(); running.Wait() })
}

func (r *runtime) close() {
	for _, closer := range slices.Backward(r.closers) {
		closer()
	}
}

// An sdkLogger is the log of the Temporal SDK without its errors of attempts that our
// interceptor has logged with more detail. The interceptor makes every failure an
// ApplicationError, except those of the SDK itself, such as an input that cannot be decoded.
type sdkLogger struct{ log.Logger }

// Error implements [log.Logger].
func (l sdkLogger) Error(message string, pairs ...any) {
	logged := slices.ContainsFunc(pairs, func(value any) bool {
		err, _ := value.(error)
		_, ours := errors.AsType[*sdktemporal.ApplicationError](err)
		return ours || sdktemporal.IsCanceledError(err)
	})
	if message != "Activity error." || !logged {
		l.Logger.Error(message, pairs...)
	}
}
