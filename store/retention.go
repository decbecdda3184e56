package store

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// DeleteExpiredArtifacts deletes the expired artifacts of ns, records that in the
// audit log and returns their number (security 9.4.5).
func (d *DB) DeleteExpiredArtifacts(ctx context.Context, ns review.Namespace) (int, error) {
	var n int64
	op := fmt.Sprintf("delete expired %s artifacts", ns)
	err := postgres.Interpret(op, pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
		deleted, err := tx.Exec(ctx, d.Blobs(ns).onTable(`delete from %s where expires_at <= now()`))
		if n = deleted.RowsAffected(); err != nil || n == 0 {
			return err
		}
		return audit(ctx, db.New(tx), string(ns), "", "artifact.expire", map[string]any{"deleted": n})
	}))
	return int(n), err
}

// OverdueArtifacts counts the artifacts of all namespaces that expired more than
// grace ago and still exist: a check of the retention workflow (security 9.4.5).
func (d *DB) OverdueArtifacts(ctx context.Context, grace time.Duration) (int, error) {
	n, err := d.q.CountOverdue(ctx, grace)
	return int(n), postgres.Interpret("count overdue artifacts", err)
}

// DeleteOldRecipients deletes the recipients of reviews whose report is older than the
// longest TTL, which can no longer be mailed, and returns their number.
func (d *DB) DeleteOldRecipients(ctx context.Context) (int, error) {
	n, err := d.q.DeleteOldRecipients(ctx)
	return int(n), postgres.Interpret("delete old recipients", err)
}

// PurgeReviews deletes the rows of reviews that succeeded longer than ttl, and 30 days,
// ago, and returns the number of reviews. Their jobs stay and reject a second review.
func (d *DB) PurgeReviews(ctx context.Context, ttl time.Duration) (total int, err error) {
	const atMost = 500
	for n := int64(atMost); n == atMost && err == nil; total += int(n) {
		n, err = d.q.PurgeReviews(ctx, db.PurgeReviewsParams{Ttl: ttl, AtMost: atMost})
	}
	return total, postgres.Interpret("purge reviews", err)
}

// ForgetMetadata forgets the addresses of deliveries and the paths of findings that are
// older than 30 days, and returns their numbers. A forgotten address is replaced by a
// keyed digest, by which [DB.PrepareDeliveries] still finds its row. Addresses of running
// reviews and of attempts in doubt stay, and so do paths of findings marked wrong.
func (d *DB) ForgetMetadata(ctx context.Context) (addresses, paths int, err error) {
	row, err := d.q.ForgetMetadata(ctx)
	return row.Addresses, row.Paths, postgres.Interpret("forget addresses and paths", err)
}
