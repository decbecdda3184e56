package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/store/db"
)

// An Outage is a circuit breaker of a worker process that is not closed: the process starts
// nothing of the stage, or one attempt at a time.
type Outage = db.Outage

// SaveOutage records an outage, or that it lasts. The database sets the time.
func (d *DB) SaveOutage(ctx context.Context, o Outage) error {
	return d.Queries.SaveOutage(ctx, db.SaveOutageParams{
		Stage: o.Stage, Worker: o.Worker, Lasting: time.Since(o.Since), HalfOpen: o.HalfOpen, ErrorClass: o.ErrorClass, Reason: o.Reason,
	})
}
