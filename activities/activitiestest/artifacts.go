package activitiestest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/artifact"
)

// Artifacts is one namespace of the artifact store. Its operations are "Put raw" and "Get
// raw" in the calls, for example.
type Artifacts struct {
	*artifact.Store
	d  Database
	ns review.Namespace
}

// Artifacts returns one namespace of the artifact store.
func (d Database) Artifacts(tb testing.TB, ns review.Namespace) *Artifacts {
	tb.Helper()
	store, err := artifact.New(d.Blobs(ns), artifact.Config{Namespace: ns, Keyset: d.w.keyset, TTL: time.Hour})
	if err != nil {
		tb.Fatal(err)
	}
	return &Artifacts{store, d, ns}
}

func newKeyset() secret.Value {
	keyset, err := artifact.NewKeyset(artifact.KEK{})
	if err != nil {
		panic(err)
	}
	return keyset
}

// Put stores body for a review.
func (a *Artifacts) Put(ctx context.Context, of review.Owner, body []byte) (review.ArtifactRef, error) {
	return try(a.d, "Put "+string(a.ns), func() (review.ArtifactRef, error) { return a.Store.Put(ctx, of, body) })
}

// Get returns what Put stored for the same review in the same namespace.
func (a *Artifacts) Get(ctx context.Context, of review.Owner, ref review.ArtifactRef) ([]byte, error) {
	return try(a.d, "Get "+string(a.ns), func() ([]byte, error) { return a.Store.Get(ctx, of, ref) })
}

// Keep stores the report of a review, and records its outcome.
func (d Database) Keep(tb testing.TB, report review.Report) review.ArtifactRef {
	tb.Helper()
	body, err := json.Marshal(report)
	if err != nil {
		tb.Fatal(err)
	}
	ref, err := d.Artifacts(tb, review.NamespaceReport).Put(tb.Context(), report.Owner(), body)
	if err == nil {
		err = d.DB.RecordReview(tb.Context(), report, ref)
	}
	if err != nil {
		tb.Fatal(err)
	}
	return ref
}
