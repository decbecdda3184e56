package store

import (
	"context"
	"encoding/json"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/rewrite/store/db"
)

// TTL is how long texts are kept: they are raw, and results have the secrets of their message
// (security 9.4.2). The database sets it.
const TTL = 7 * 24 * time.Hour

// Messages are the encrypted messages and preferences, which a worker reads. Every access is
// recorded in the audit log (security 9.4.3).
type Messages struct{ *Queue }

// Blob returns the stored form of a text. The error has class ARTIFACT_EXPIRED if it has
// expired or does not exist.
func (m Messages) Blob(ctx context.Context, id string) ([]byte, error) {
	body, err := m.q.Message(ctx, id)
	if postgres.NoRow(err) {
		return nil, failure.Errorf(failure.ArtifactExpired, "read text message:%s: it has expired or was never stored", id)
	}
	return body, postgres.Interpret("read text", err)
}

// PutBlob returns an error: only backends store messages, with [Queue.Enqueue].
func (m Messages) PutBlob(context.Context, string, []byte, time.Duration) error {
	return failure.Errorf(failure.PermissionDenied, "write a message: only a backend may")
}

// Results are the encrypted rewrites, which a worker writes and a backend reads with
// [Queue.Result].
type Results struct{ *Queue }

// Blob returns an error: a worker reads no result.
func (r Results) Blob(context.Context, string) ([]byte, error) {
	return nil, failure.Errorf(failure.PermissionDenied, "read a result: only a backend may")
}

// PutBlob stores a result. It may be called again.
func (r Results) PutBlob(ctx context.Context, id string, body []byte, _ time.Duration) error {
	return postgres.Interpret("store result", r.q.PutResult(ctx, db.PutResultParams{ID: id, Body: body}))
}

// DeleteExpired deletes the expired texts, records that and returns their number (security
// 9.4.5).
func (q *Queue) DeleteExpired(ctx context.Context) (n int, err error) {
	err = q.inTx(ctx, "delete expired texts", func(tx *db.Queries) error {
		messages, err := tx.DeleteExpiredMessages(ctx)
		if err != nil {
			return err
		}
		results, err := tx.DeleteExpiredResults(ctx)
		if n = int(messages + results); err != nil || n == 0 {
			return err
		}
		return audit(ctx, tx, "texts", "", "artifact.expire", map[string]any{"messages": messages, "results": results})
	})
	return n, err
}

// A Figure is one value of a metric: a count, or an age in seconds.
type Figure struct {
	Name   string
	Labels map[string]string
	Value  float64
}

// Figures returns the metrics of the queue.
func (q *Queue) Figures(ctx context.Context) ([]Figure, error) {
	rows, err := q.q.Figures(ctx)
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
