package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/criticizer/criticizer/failure"
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
		detail, err := json.Marshal(map[string]int64{"deleted": n})
		if err != nil {
			return failure.New(failure.InvariantViolated, err)
		}
		return q.AppendAudit(ctx, db.AppendAuditParams{Action: "artifact.expire", Object: string(b.ns), Detail: detail})
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

// A Reading is the way of one person with one reason to artifacts' content. The
// database gives nothing without leaving a record of both (security 9.4.3).
type Reading struct {
	db          *DB
	ns          review.Namespace
	who, reason string
}

// Reading returns what who may read of ns; d must be open as [RoleReader].
func (d *DB) Reading(ns review.Namespace, who, reason string) Reading {
	return Reading{db: d, ns: ns, who: who, reason: reason}
}

// Blob returns what was stored as id. The error is of class ARTIFACT_EXPIRED if
// it is past its time or never was.
func (r Reading) Blob(ctx context.Context, id string) ([]byte, error) {
	body, err := r.db.q.ReadArtifact(ctx, db.ReadArtifactParams{Namespace: string(r.ns), Artifact: id, Who: r.who, Reason: r.reason})
	if err == nil && body == nil {
		return nil, failure.Errorf(failure.ArtifactExpired, "read artifact %s:%s: it has expired or was never stored", r.ns, id)
	}
	return body, interpret("read artifact", err)
}

// PutBlob refuses: who reads, writes nothing.
func (r Reading) PutBlob(context.Context, string, []byte, time.Duration) error {
	return failure.Errorf(failure.PermissionDenied, "write %s artifact: only its stage may", r.ns)
}

// RecordRefusedReading notes that somebody may not read an artifact but tried to
// (security 9.4.3).
func (d *DB) RecordRefusedReading(ctx context.Context, ref review.ArtifactRef, who, reason string) error {
	detail, err := json.Marshal(map[string]string{"reason": reason})
	if err != nil {
		return failure.New(failure.InvariantViolated, err)
	}
	record := db.AppendAuditParams{Actor: who, Action: "artifact.show.denied", Object: string(ref), Detail: detail}
	return interpret("audit denied access", d.q.AppendAudit(ctx, record))
}
