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

// Texts are the encrypted messages and preferences, which a worker reads, and the results, which it
// writes. Backends write and read the others with [Queue.Enqueue] and [Queue.Result]. Every access
// is recorded in the audit log (security 9.4.3).
type Texts struct{ *Queue }

// Blob returns the stored form of a message. The error has class ARTIFACT_EXPIRED if it has
// expired or does not exist.
func (t Texts) Blob(ctx context.Context, id string) ([]byte, error) {
	body, err := t.Message(ctx, id)
	if failure.ClassOf(err) == failure.NotFound {
		err = failure.Errorf(failure.ArtifactExpired, "read text message:%s: it has expired or was never stored", id)
	}
	return body, err
}

// PutBlob stores a result. It may be called again.
func (t Texts) PutBlob(ctx context.Context, id string, body []byte, _ time.Duration) error {
	return t.PutResult(ctx, id, body)
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
