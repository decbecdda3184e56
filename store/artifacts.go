package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/postgres"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// Blobs are the encrypted bodies of one namespace's artifacts. Every access is
// recorded in the audit log in its own transaction, and every denied access is
// recorded, too (security 9.4.3).
type Blobs struct {
	db *DB
	ns review.Namespace
}

// Blobs returns the blobs of ns.
func (d *DB) Blobs(ns review.Namespace) Blobs { return Blobs{d, ns} }

// onTable puts the namespace's table into a statement: a schema cannot be a
// parameter, so sqlc cannot compile these statements.
func (b Blobs) onTable(statement string) string {
	return fmt.Sprintf(statement, pgx.Identifier{string(b.ns), "artifacts"}.Sanitize())
}

// Each access and its record are one statement, so one transaction and one round trip.
//
// putBlob sets the body of an artifact that exists, for it may be encrypted with a newer key.
// It does not read the body from excluded: that needs the right to read bodies. The database
// sets the times.
const (
	recorded = `with recorded as (insert into criticizer.audit_log (claimed, action, object, detail) values ('', $1, $2, '{}')) `
	getBlob  = recorded + `select body from %s where id = $3 and expires_at > now()`
	putBlob  = recorded + `insert into %s (id, body, ttl) values ($3, $4, $5) on conflict (id) do update set body = $4, ttl = $5`
)

// PutBlob stores body until ttl from now by the database's clock. Storing an existing
// id again can extend its time and never shortens it.
func (b Blobs) PutBlob(ctx context.Context, id string, body []byte, ttl time.Duration) error {
	_, err := b.access(ctx, "write", putBlob, id, body, ttl)
	return err
}

// Blob returns the body of an artifact. The error has class ARTIFACT_EXPIRED if the
// artifact has expired or does not exist.
func (b Blobs) Blob(ctx context.Context, id string) ([]byte, error) {
	body, err := b.access(ctx, "read", getBlob, id)
	return found(body, b.ns, id, err)
}

// found returns an error if there is no body.
func found(body []byte, ns review.Namespace, id string, err error) ([]byte, error) {
	if err == nil && body == nil {
		err = failure.Errorf(failure.ArtifactExpired, "read artifact %s:%s: it has expired or was never stored", ns, id)
	}
	return body, err
}

// access executes one of the statements above, which records an access even if there is no
// such artifact. It records a denied access in another transaction, because the first is
// rolled back.
func (b Blobs) access(ctx context.Context, verb, statement, id string, more ...any) (body []byte, err error) {
	object, action := string(b.ns)+":"+id, "artifact."+verb
	err = b.db.pool.QueryRow(ctx, b.onTable(statement), append([]any{action, object, id}, more...)...).Scan(&body)
	if postgres.NoRow(err) {
		return nil, nil
	}
	err = postgres.Interpret(verb+" artifact", err)
	if failure.ClassOf(err) != failure.PermissionDenied {
		return body, err
	}
	b.db.lg.WarnContext(ctx, "artifact access denied", "role", string(b.db.role), "action", action, "object", object)
	return nil, errors.Join(err, audit(ctx, b.db.Queries, object, "", action+".denied", map[string]any{}))
}

// An AuditedReader reads artifacts for one person and one reason. The database returns no
// content without a record of both (security 9.4.3).
type AuditedReader struct {
	db          *DB
	ns          review.Namespace
	who, reason string
}

// AuditedReader returns the artifacts of ns for a person; d must be open as [RoleReader].
func (d *DB) AuditedReader(ns review.Namespace, who, reason string) AuditedReader {
	return AuditedReader{db: d, ns: ns, who: who, reason: reason}
}

// Blob is [Blobs.Blob] for the person.
func (r AuditedReader) Blob(ctx context.Context, id string) ([]byte, error) {
	body, err := r.db.ReadArtifact(ctx, db.ReadArtifactParams{Namespace: string(r.ns), Artifact: id, Who: r.who, Reason: r.reason})
	return found(body, r.ns, id, err)
}

// PutBlob returns an error: a person writes no artifact.
func (r AuditedReader) PutBlob(context.Context, string, []byte, time.Duration) error {
	return failure.Errorf(failure.PermissionDenied, "write %s artifact: only its stage may", r.ns)
}

// RecordDeniedRead records that a person tried to read an artifact without the
// right to (security 9.4.3).
func (d *DB) RecordDeniedRead(ctx context.Context, ref review.ArtifactRef, who, reason string) error {
	return audit(ctx, d.Queries, string(ref), who, "artifact.show.denied", map[string]any{"reason": reason})
}

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
		return audit(ctx, db.New(postgres.Classified(tx)), string(ns), "", "artifact.expire", map[string]any{"deleted": n})
	}))
	return int(n), err
}

// DeleteOldRecipients deletes the recipients of reviews whose report is older than the
// longest TTL, which can no longer be mailed, and returns their number.
func (d *DB) DeleteOldRecipients(ctx context.Context) (int, error) {
	n, err := d.Queries.DeleteOldRecipients(ctx)
	return int(n), err
}

// PurgeReviews deletes the rows of reviews that succeeded longer than ttl, and 30 days,
// ago, and returns the number of reviews. Their jobs stay and reject a second review.
func (d *DB) PurgeReviews(ctx context.Context, ttl time.Duration) (total int, err error) {
	const atMost = 500
	for n := int64(atMost); n == atMost && err == nil; total += int(n) {
		n, err = d.Queries.PurgeReviews(ctx, ttl, atMost)
	}
	return total, err
}

// A Forgotten counts what was deleted about a changelist, and names the changelists that have more
// about the same change: the other numbers of a renumbered shelf.
type Forgotten struct {
	Artifacts  int                 `json:"artifacts"`
	Findings   int                 `json:"findings"`
	Deliveries int                 `json:"deliveries"` // whose address was replaced by a digest
	Related    []review.Changelist `json:"related,omitempty"`
}

// A ForgetRefusal is an error that says why [DB.ForgetChangelist] deletes nothing.
type ForgetRefusal string

// The refusals, in the words of the function forget_changelist.
const (
	ForgetNoReview        ForgetRefusal = "it has no review"
	ForgetInProgress      ForgetRefusal = "a review of it is in progress"
	ForgetDeliveryInDoubt ForgetRefusal = "a delivery of it is in doubt"
	ForgetNoticeInDoubt   ForgetRefusal = "a notice to its author is in doubt"
)

func (r ForgetRefusal) Error() string { return string(r) }

// ForgetChangelist deletes what is stored about a changelist. Jobs and outcomes stay, so that a later
// request of the same version is answered, and the audit log. An error of class WRITE_CONFLICT wraps
// a [ForgetRefusal].
func (d *DB) ForgetChangelist(ctx context.Context, cl review.Changelist, who, reason string) (Forgotten, error) {
	row, err := d.Queries.ForgetChangelist(ctx, int64(cl), who, reason)
	if err == nil && row.Refusal != "" {
		return Forgotten{}, failure.Errorf(failure.WriteConflict, "forget changelist %d: %w", cl, ForgetRefusal(row.Refusal))
	}
	gone := Forgotten{Artifacts: row.Artifacts, Findings: row.Findings, Deliveries: row.Deliveries}
	for _, other := range row.Related {
		gone.Related = append(gone.Related, review.Changelist(other))
	}
	return gone, err
}

// ForgetMetadata forgets the addresses of deliveries and the paths of findings that are
// older than 30 days, and returns their numbers. A forgotten address is replaced by a
// keyed digest, by which [DB.PrepareDeliveries] still finds its row. Addresses of running
// reviews and of attempts in doubt stay, and so do paths of findings marked wrong.
func (d *DB) ForgetMetadata(ctx context.Context) (addresses, paths int, err error) {
	row, err := d.Queries.ForgetMetadata(ctx)
	return row.Addresses, row.Paths, err
}
