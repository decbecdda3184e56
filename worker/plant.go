package main

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/artifact"
)

// A plant holds what the stages of one process share.
type plant struct {
	cfg       *config.Config
	lg        *slog.Logger
	scrubber  *redaction.Pipeline
	namespace temporalns.Namespace
	closers   []func()
	metrics   *telemetry.Metrics // nil if nobody asks
	status    status
}

// newPlant reaches Temporal and opens the log.
func newPlant(ctx context.Context, cfg *config.Config, logTo io.Writer) (*plant, error) {
	p := &plant{cfg: cfg}
	var err error
	// Only the stages that seal and unseal changes use the installation's key.
	if p.scrubber, err = wiring.Pipeline(cfg, secret.New(rand.Text())); err != nil {
		return nil, err
	}
	p.lg = telemetry.Logger(logTo, telemetry.Config{Level: cfg.Log.Level, Format: cfg.Log.Format, Scrub: p.scrub})
	where := wiring.Namespace(cfg)
	if err := p.observe(ctx, &where); err != nil {
		p.close()
		return nil, err
	}
	p.namespace, err = temporalns.Dial(ctx, log.NewStructuredLogger(slog.New(sdkLines{p.lg.Handler()})), where)
	if err != nil {
		p.close()
		return nil, err
	}
	p.closers = append(p.closers, p.namespace.Close)
	return p, nil
}

// scrub redacts what is about to be logged or to enter a workflow's history.
// What the pipeline cannot vouch for is withheld.
func (p *plant) scrub(s string) string {
	text, err := p.scrubber.String(s)
	if err != nil {
		return "[withheld: not redactable]"
	}
	return text.String()
}

// serve runs the workers of every stage until ctx ends, then lets them finish.
func (p *plant) serve(ctx context.Context, chosen []stage) error {
	p.followSecrets(ctx, chosen)
	if err := p.namespace.RegisterAttributes(ctx); err != nil {
		return err
	}
	var workers []worker.Worker
	defer func() { stopAll(workers) }()
	for _, s := range chosen {
		of, err := p.workers(ctx, s)
		if err != nil {
			return fmt.Errorf("start stage %s: %w", s.name, err)
		}
		for _, w := range of {
			if err := w.Start(); err != nil {
				return fmt.Errorf("start stage %s: %w", s.name, err)
			}
			workers = append(workers, w)
		}
	}
	p.status.set(true)
	p.lg.InfoContext(ctx, "worker ready", "stages", len(chosen))
	<-ctx.Done()
	p.status.set(false)
	p.lg.InfoContext(ctx, "worker stopping")
	return nil
}

// stopAll gives all workers the same time to finish what they have begun.
func stopAll(workers []worker.Worker) {
	var stopping sync.WaitGroup
	for _, w := range workers {
		stopping.Go(w.Stop)
	}
	stopping.Wait()
}

// reportTime is what a worker has left, when it has ended the attempts that
// were not over in time, to say so to Temporal.
const reportTime = 4 * time.Second

// workers makes the worker of each queue of a stage and, where they may be braked,
// those that probe for the breakers.
func (p *plant) workers(ctx context.Context, s stage) ([]worker.Worker, error) {
	db, err := store.Open(ctx, p.lg, p.cfg.Database.URL, s.role)
	if err != nil {
		return nil, err
	}
	p.closers = append(p.closers, db.Close)
	if err := db.CheckSchema(ctx); err != nil {
		return nil, err
	}
	p.status.ask(db.CheckSchema)
	run, err := s.build(ctx, p, db)
	if err != nil {
		return nil, err
	}
	of := line{queue: s.queue, activities: run.activities, ping: run.ping}
	if s.workflows != nil {
		w, err := p.server(s, of, nil)
		if err != nil {
			return nil, err
		}
		s.workflows(w)
		return []worker.Worker{w}, nil
	}
	var workers []worker.Worker
	for _, l := range append([]line{of}, run.beside...) {
		w, err := p.server(s, l, p.alarm(l))
		if err != nil {
			return nil, err
		}
		workers = append(workers, w, p.prober(l, db))
	}
	return workers, nil
}

// server makes the worker of one queue of a stage.
func (p *plant) server(s stage, l line, alarm *activities.CircuitBreaker) (worker.Worker, error) {
	verdicts := &activities.Interceptor{Scrub: p.scrub, Log: p.lg, Patient: s.patient, Grace: p.cfg.Worker.StopGrace}
	if alarm != nil {
		verdicts.Watch = alarm
	}
	deployment, err := deploymentOf(p.cfg.Worker, s.workflows != nil)
	if err != nil {
		return nil, err
	}
	w := worker.New(p.namespace.Client, l.queue, worker.Options{
		DeploymentOptions:            deployment,
		Interceptors:                 []interceptor.WorkerInterceptor{verdicts},
		TaskQueueActivitiesPerSecond: s.rate(p.cfg.Worker),
		DisableWorkflowWorker:        s.workflows == nil,
		WorkerStopTimeout:            p.cfg.Worker.StopGrace + reportTime,
	})
	w.RegisterActivity(l.activities)
	return w, nil
}

// artifacts opens one namespace of the artifact store.
func (p *plant) artifacts(db *store.DB, ns review.Namespace) (*artifact.Store, error) {
	ttl := map[review.Namespace]time.Duration{
		review.NamespaceRaw:      p.cfg.Artifacts.RawTTL,
		review.NamespaceRedacted: p.cfg.Artifacts.RedactedTTL,
		review.NamespaceReport:   p.cfg.Artifacts.ReportTTL,
		review.NamespaceAnswer:   p.cfg.Artifacts.RedactedTTL,
	}[ns]
	return artifact.New(db.Blobs(ns), ns, p.cfg.Artifacts.Keyset, ttl)
}

func (p *plant) close() {
	for _, c := range slices.Backward(p.closers) {
		c()
	}
}
