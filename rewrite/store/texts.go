package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
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
	body, err := m.Message(ctx, id)
	if failure.ClassOf(err) == failure.NotFound {
		err = failure.Errorf(failure.ArtifactExpired, "read text message:%s: it has expired or was never stored", id)
	}
	return body, err
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
	return r.PutResult(ctx, id, body)
}

// DeleteExpired deletes the expired texts, records that and returns their number (security
// 9.4.5).
func (q *Queue) DeleteExpired(ctx context.Context) (n int64, err error) {
	err = q.inTx(ctx, "delete expired texts", func(tx *db.Queries) error {
		messages, err := tx.DeleteExpiredMessages(ctx)
		if err != nil {
			return err
		}
		results, err := tx.DeleteExpiredResults(ctx)
		if n = messages + results; err != nil || n == 0 {
			return err
		}
		return audit(ctx, tx, "texts", "", "artifact.expire", map[string]any{"messages": messages, "results": results})
	})
	return n, err
}
