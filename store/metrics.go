package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
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
	rows, err := d.q.Figures(ctx)
	if err != nil {
		return nil, postgres.Interpret("read metrics", err)
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
type Outage struct {
	Stage    string        `json:"stage"` // or channel
	Worker   string        `json:"worker"`
	Since    time.Time     `json:"since"`
	SeenAt   time.Time     `json:"seen_at"` // when the process last confirmed it
	HalfOpen bool          `json:"half_open"`
	Class    failure.Class `json:"error_class"` // of the last failure
	Reason   string        `json:"reason"`
}

// SaveOutage records an outage, or that it lasts. The database sets the time.
func (d *DB) SaveOutage(ctx context.Context, o Outage) error {
	return postgres.Interpret("record outage", d.q.SaveOutage(ctx, db.SaveOutageParams{
		Stage: o.Stage, Worker: o.Worker, Lasting: time.Since(o.Since), HalfOpen: o.HalfOpen, Class: string(o.Class), Reason: o.Reason,
	}))
}

// DeleteOutage records the end of an outage.
func (d *DB) DeleteOutage(ctx context.Context, stage, worker string) error {
	return postgres.Interpret("record the end of an outage", d.q.DeleteOutage(ctx, db.DeleteOutageParams{Stage: stage, Worker: worker}))
}

// Outages returns the outages that were confirmed in the last 5 minutes, by stage.
func (d *DB) Outages(ctx context.Context) ([]Outage, error) {
	rows, err := d.q.Outages(ctx)
	return postgres.Convert("read outages", rows, err, func(r db.Outage) Outage {
		return Outage{r.Stage, r.Worker, r.Since, r.SeenAt, r.HalfOpen, failure.Class(r.Class), r.Reason}
	})
}
