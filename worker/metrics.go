package main

import (
	"context"
	"fmt"

	"github.com/criticizer/criticizer/internal/telemetry"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/workflows/contract"
)

// addReadings adds a source of metrics, if metrics are served.
func (r *runtime) addReadings(source string, read func(context.Context) ([]telemetry.Sample, error)) {
	if r.metrics != nil {
		r.metrics.AddSource(source, read)
	}
}

// addInstallationMetrics adds the metrics of the whole installation. The workers
// of stage workflows export them.
func (r *runtime) addInstallationMetrics(db *store.DB) {
	r.addReadings("postgres", func(ctx context.Context) ([]telemetry.Sample, error) {
		figures, err := db.Figures(ctx)
		readings := make([]telemetry.Sample, len(figures))
		for i, f := range figures {
			readings[i] = telemetry.Sample(f)
		}
		return readings, err
	})
	r.addReadings("temporal", r.queueReadings)
}

// queueReadings reads the backlog of each task queue.
func (r *runtime) queueReadings(ctx context.Context) ([]telemetry.Sample, error) {
	var readings []telemetry.Sample
	for _, queue := range contract.WatchedQueues() {
		state, err := r.namespace.QueueState(ctx, queue, queue == contract.QueueBookkeeping)
		if err != nil {
			return nil, fmt.Errorf("read state of task queue %s: %w", queue, err)
		}
		labels := map[string]string{"queue": queue}
		readings = append(readings,
			telemetry.Sample{Name: "criticizer_queue_depth", Labels: labels, Value: float64(state.Waiting)},
			telemetry.Sample{Name: "criticizer_queue_oldest_seconds", Labels: labels, Value: state.Oldest.Seconds()})
	}
	return readings, nil
}

// addTokenPrices exports the price of a token, from which monitoring computes the
// cost of reviews.
func (r *runtime) addTokenPrices() {
	prices := r.cfg.LLM.TokenPrices()
	price := func(kind string, perMillion float64) telemetry.Sample {
		return telemetry.Sample{Name: "criticizer_model_token_price", Value: perMillion / 1e6, Labels: map[string]string{"kind": kind}}
	}
	r.addReadings("config", func(context.Context) ([]telemetry.Sample, error) {
		return []telemetry.Sample{price("prompt", prices.Prompt), price("cached", prices.Cached), price("completion", prices.Completion)}, nil
	})
}
