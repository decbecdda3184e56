package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/store/db"
)

// A Figure is one value of a metric: a count, or an age in seconds.
type Figure struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Figures returns the metrics that docs/observability.md lists as read from
// Postgres.
func (d *DB) Figures(ctx context.Context) ([]Figure, error) {
	rows, err := d.Queries.Figures(ctx)
	if err != nil {
		return nil, err
	}
	figures := make([]Figure, len(rows))
	for i, row := range rows {
		figures[i] = Figure{Name: row.Name, Value: row.Figure}
		if err := json.Unmarshal(row.Labels, &figures[i].Labels); err != nil {
			return nil, failure.Errorf(failure.InvariantViolated, "read labels of %s: %w", row.Name, err)
		}
	}
	return figures, nil
}

// An Outage is a circuit breaker of a worker process that is not closed: the process starts
// nothing of the stage, or one attempt at a time.
type Outage = db.Outage

// SaveOutage records an outage, or that it lasts. The database sets the time.
func (d *DB) SaveOutage(ctx context.Context, o Outage) error {
	return d.Queries.SaveOutage(ctx, db.SaveOutageParams{
		Stage: o.Stage, Worker: o.Worker, Lasting: time.Since(o.Since), HalfOpen: o.HalfOpen, ErrorClass: o.ErrorClass, Reason: o.Reason,
	})
}
