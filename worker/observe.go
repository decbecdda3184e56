package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/internal/telemetry/traces"
	"github.com/criticizer/criticizer/internal/temporalns"
	"github.com/criticizer/criticizer/internal/wiring"
	"github.com/criticizer/criticizer/p4"
	"github.com/criticizer/criticizer/store"
)

// observe makes traces and metrics, has the connection to Temporal take part in
// them, and answers whoever asks how this worker is.
func (p *plant) observe(ctx context.Context, where *temporalns.Config) error {
	interceptors, flush, err := traces.Start(ctx, p.lg, "criticizer-worker", 2*time.Second)
	if err != nil {
		return err
	}
	where.Interceptors = interceptors
	p.closers = append(p.closers, flush)
	if p.cfg.Worker.Listen == "" {
		return nil
	}
	if p.metrics, err = telemetry.NewMetrics(p.lg); err != nil {
		return err
	}
	where.Metrics = p.metrics.Handler()
	stop, err := telemetry.Serve(p.cfg.Worker.Listen, p.metrics, p.ready)
	if err != nil {
		return failure.New(failure.ConfigInvalid, err)
	}
	p.closers = append(p.closers, stop)
	return nil
}

// ready says what keeps the worker from work: it is starting or stopping, or
// Temporal or the database is out of reach.
func (p *plant) ready(ctx context.Context) error {
	checks, serving := p.status.checks()
	if !serving {
		return errors.New("the worker is starting or stopping")
	}
	if _, err := p.namespace.CheckHealth(ctx, &client.CheckHealthRequest{}); err != nil {
		return errors.New(p.scrub(fmt.Sprintf("reach Temporal: %v", err)))
	}
	for _, check := range checks {
		if err := check(ctx); err != nil {
			return errors.New(p.scrub(fmt.Sprintf("ask the database: %v", err)))
		}
	}
	return nil
}

// A status is whether all stages of a worker are served, and what they need.
type status struct {
	mu      sync.Mutex
	serving bool
	needs   []func(context.Context) error
}

func (s *status) set(serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.serving = serving
}

func (s *status) ask(need func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needs = append(s.needs, need)
}

func (s *status) checks() (needs []func(context.Context) error, serving bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.needs, s.serving
}

// tellFigures adds what is the same for all workers: those that serve the
// workflows tell it.
func (p *plant) tellFigures(db *store.DB, limits p4.InFlight) {
	if p.metrics == nil {
		return
	}
	p.metrics.Pull("postgres", readings(db.Figures))
	p.metrics.Pull("temporal", p.queueFigures)
	if limits != nil {
		p.metrics.Pull("slots", func(ctx context.Context) ([]telemetry.Reading, error) { return slotFigures(ctx, db, limits) })
	}
}

// slotFigures reads how many reviews have slots and wait for them. A limit is named
// by its place in the configuration: no label holds a path.
func slotFigures(ctx context.Context, db *store.DB, limits p4.InFlight) ([]telemetry.Reading, error) {
	use, err := db.SlotsInUse(ctx)
	var readings []telemetry.Reading
	for i, pattern := range limits.Patterns() {
		labels := map[string]string{"limit": strconv.Itoa(i + 1)}
		readings = append(readings,
			telemetry.Reading{Name: "criticizer_slots", Labels: labels, Value: float64(limits.Limits()[pattern])},
			telemetry.Reading{Name: "criticizer_slots_taken", Labels: labels, Value: float64(use[pattern].Taken)},
			telemetry.Reading{Name: "criticizer_slots_awaited", Labels: labels, Value: float64(use[pattern].Awaited)})
	}
	return readings, err
}

// tellRewrites adds the figures of the queue of rewrites, which only its own
// workers may read.
func (p *plant) tellRewrites(db *store.DB) {
	if p.metrics != nil {
		p.metrics.Pull("rewrites", readings(db.RewriteFigures))
	}
}

func readings(read func(context.Context) ([]store.Figure, error)) func(context.Context) ([]telemetry.Reading, error) {
	return func(ctx context.Context) ([]telemetry.Reading, error) {
		figures, err := read(ctx)
		readings := make([]telemetry.Reading, len(figures))
		for i, f := range figures {
			readings[i] = telemetry.Reading(f)
		}
		return readings, err
	}
}

// queueFigures reads how the task queues of the stages get on.
func (p *plant) queueFigures(ctx context.Context) ([]telemetry.Reading, error) {
	var readings []telemetry.Reading
	for _, queue := range activities.WatchedQueues() {
		state, err := p.namespace.QueueState(ctx, queue)
		if err != nil {
			return nil, fmt.Errorf("look at task queue %s: %w", queue, err)
		}
		braked := 0.0
		if state.Limit.OfBreaker() {
			braked = 1
		}
		labels := map[string]string{"queue": queue}
		readings = append(readings,
			telemetry.Reading{Name: "criticizer_breaker_open", Labels: labels, Value: braked},
			telemetry.Reading{Name: "criticizer_queue_depth", Labels: labels, Value: float64(state.Waiting)},
			telemetry.Reading{Name: "criticizer_queue_oldest_seconds", Labels: labels, Value: state.Oldest.Seconds()})
	}
	return readings, nil
}

// tellPrices tells what a token costs, so that monitoring can tell what reviews
// do.
func (p *plant) tellPrices() {
	if p.metrics == nil {
		return
	}
	prices := wiring.Prices(p.cfg)
	price := func(kind string, ofMillion float64) telemetry.Reading {
		return telemetry.Reading{Name: "criticizer_model_token_price", Value: ofMillion / 1e6, Labels: map[string]string{"kind": kind}}
	}
	p.metrics.Pull("config", func(context.Context) ([]telemetry.Reading, error) {
		return []telemetry.Reading{price("prompt", prices.Prompt), price("cached", prices.Cached), price("completion", prices.Completion)}, nil
	})
}
