package store

import (
	"context"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/db"
)

// A Reading lets one person read artifacts' content for one reason. The database
// gives nothing without leaving a record of both (security 9.4.3).
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
	return interpret("audit denied access", audit(ctx, d.q, string(ref), who, "artifact.show.denied", map[string]any{"reason": reason}))
}
