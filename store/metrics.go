package store

import (
	"context"
	"encoding/json"

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
	return asFigures(rows, err)
}

// RewriteFigures returns the metrics of the rewrite queue.
func (d *DB) RewriteFigures(ctx context.Context) ([]Figure, error) {
	rows, err := d.q.RewriteFigures(ctx)
	return asFigures(rows, err)
}

func asFigures[Row db.FiguresRow | db.RewriteFiguresRow](rows []Row, err error) ([]Figure, error) {
	if err != nil {
		return nil, postgres.Interpret("read metrics", err)
	}
	figures := make([]Figure, len(rows))
	for i, r := range rows {
		row := db.FiguresRow(r)
		figures[i] = Figure{Name: row.Name, Value: row.Figure}
		if err := json.Unmarshal(row.Labels, &figures[i].Labels); err != nil {
			return nil, failure.Errorf(failure.InvariantViolated, "read labels of %s: %w", row.Name, err)
		}
	}
	return figures, nil
}
