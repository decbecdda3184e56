package store

import (
	"context"
	"fmt"
	"time"
)

// DeleteExpired deletes what is past its time and returns how much that was
// (security 9.4.5).
func (b Blobs) DeleteExpired(ctx context.Context) (int, error) {
	n, err := b.queries.deleteExpired(b.db.q, ctx)
	return int(n), interpret(fmt.Sprintf("delete expired %s artifacts", b.ns), err)
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
