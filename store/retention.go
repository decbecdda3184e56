package store

import (
	"context"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// DeleteExpired deletes what is past its time and returns how much that was
// (security 9.4.5). That something was deleted is audit-logged.
func (b Blobs) DeleteExpired(ctx context.Context) (int, error) {
	var n int64
	err := b.db.inTx(ctx, fmt.Sprintf("delete expired %s artifacts", b.ns), func(q *db.Queries) (err error) {
		if n, err = b.queries.deleteExpired(q, ctx); err != nil || n == 0 {
			return err
		}
		return audit(ctx, q, string(b.ns), "", "artifact.expire", map[string]any{"deleted": n})
	})
	return int(n), err
}

// DeleteExpiredArtifacts is [Blobs.DeleteExpired] for one namespace by its name.
func (d *DB) DeleteExpiredArtifacts(ctx context.Context, ns review.Namespace) (int, error) {
	return d.Blobs(ns).DeleteExpired(ctx)
}

// ForgetRecipients deletes who could be told of reviews whose report is past
// the longest TTL: they cannot be mailed any more. It returns how many that was.
func (d *DB) ForgetRecipients(ctx context.Context) (int, error) {
	n, err := d.q.ForgetRecipients(ctx)
	return int(n), interpret("forget recipients", err)
}

// OverdueArtifacts counts the artifacts of all namespaces that should have been
// deleted longer than grace ago: the check that the deletion job works
// (security 9.4.5).
func (d *DB) OverdueArtifacts(ctx context.Context, grace time.Duration) (int, error) {
	n, err := d.q.CountOverdue(ctx, grace)
	return int(n), interpret("count overdue artifacts", err)
}
