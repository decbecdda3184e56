package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// blobQueries are the queries of one namespace. SQL cannot take a schema as a
// parameter, so each namespace has its own.
type blobQueries struct {
	put           func(*db.Queries, context.Context, db.PutRawParams) error
	body          func(*db.Queries, context.Context, string) ([]byte, error)
	deleteExpired func(*db.Queries, context.Context) (int64, error)
}

var blobQueriesOf = map[review.Namespace]blobQueries{
	review.NamespaceRaw: {(*db.Queries).PutRaw, (*db.Queries).RawBody, (*db.Queries).DeleteExpiredRaw},
	review.NamespaceRedacted: {
		func(q *db.Queries, ctx context.Context, p db.PutRawParams) error {
			return q.PutRedacted(ctx, db.PutRedactedParams(p))
		},
		(*db.Queries).RedactedBody, (*db.Queries).DeleteExpiredRedacted,
	},
	review.NamespaceReport: {
		func(q *db.Queries, ctx context.Context, p db.PutRawParams) error {
			return q.PutReport(ctx, db.PutReportParams(p))
		},
		(*db.Queries).ReportBody, (*db.Queries).DeleteExpiredReport,
	},
	review.NamespaceAnswer: {
		func(q *db.Queries, ctx context.Context, p db.PutRawParams) error {
			return q.PutAnswer(ctx, db.PutAnswerParams(p))
		},
		(*db.Queries).AnswerBody, (*db.Queries).DeleteExpiredAnswers,
	},
	review.NamespaceRewrite: {
		func(q *db.Queries, ctx context.Context, p db.PutRawParams) error {
			return q.PutRewrite(ctx, db.PutRewriteParams(p))
		},
		(*db.Queries).RewriteBody, (*db.Queries).DeleteExpiredRewrite,
	},
}

// Blobs are the stored bodies of one namespace's artifacts. Every access is
// audit-logged in its own transaction, and so is every denied one (security 9.4.3).
type Blobs struct {
	db      *DB
	ns      review.Namespace
	queries blobQueries
}

// Blobs returns the blobs of ns. It panics if there is no such namespace: that
// is a mistake in the wiring, not in the input.
func (d *DB) Blobs(ns review.Namespace) Blobs {
	queries, ok := blobQueriesOf[ns]
	if !ok {
		panic(fmt.Sprintf("store: no namespace %q", ns))
	}
	return Blobs{db: d, ns: ns, queries: queries}
}

// PutBlob stores body until ttl from now by the database's clock. Storing the
// same id again extends its time, never shortens it.
func (b Blobs) PutBlob(ctx context.Context, id string, body []byte, ttl time.Duration) error {
	return b.access(ctx, "write", id, func(q *db.Queries) error {
		return b.queries.put(q, ctx, db.PutRawParams{ID: id, Body: body, Ttl: ttl})
	})
}

// Blob returns what was stored as id. The error is of class ARTIFACT_EXPIRED if
// it is past its time or never was.
func (b Blobs) Blob(ctx context.Context, id string) ([]byte, error) {
	var body []byte
	err := b.access(ctx, "read", id, func(q *db.Queries) (err error) {
		body, err = b.queries.body(q, ctx, id)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil // the attempt is still audited
		}
		return err
	})
	if err == nil && body == nil {
		return nil, failure.Errorf(failure.ArtifactExpired, "read artifact %s:%s: it has expired or was never stored", b.ns, id)
	}
	return body, err
}

// access runs fn and its audit record in one transaction; a denied access is
// recorded in another, as the first is lost.
func (b Blobs) access(ctx context.Context, verb, id string, fn func(q *db.Queries) error) error {
	object, action, detail := string(b.ns)+":"+id, "artifact."+verb, map[string]any{}
	err := b.db.inTx(ctx, verb+" artifact", func(q *db.Queries) error {
		if err := fn(q); err != nil {
			return err
		}
		return audit(ctx, q, object, "", action, detail)
	})
	if failure.ClassOf(err) != failure.PermissionDenied {
		return err
	}
	b.db.lg.WarnContext(ctx, "artifact access denied", "role", string(b.db.role), "action", action, "object", object)
	return errors.Join(err, interpret("audit denied access", audit(ctx, b.db.q, object, "", action+".denied", detail)))
}
