package store_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/artifact"
	"github.com/criticizer/criticizer/store/storetest"
)

// artifacts are one namespace of the artifact store.
type artifacts interface {
	Put(ctx context.Context, of review.Owner, body []byte) (review.ArtifactRef, error)
	Get(ctx context.Context, of review.Owner, ref review.ArtifactRef) ([]byte, error)
	PutAs(ctx context.Context, name string, body []byte) error
	GetAs(ctx context.Context, name string) ([]byte, error)
}

// The fake of the artifacts stores what the database stores: a test with a fake that permits
// or keeps more proves nothing.
func TestFakeArtifactsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	w, db := activitiestest.New(), storetest.New(t).Open(t, "")
	keyset := must(artifact.NewKeyset(artifact.KEK{}))(t)
	fake := exerciseArtifacts(t, func(ns review.Namespace) artifacts { return w.Artifacts(ns) })
	want := exerciseArtifacts(t, func(ns review.Namespace) artifacts {
		return must(artifact.New(db.Blobs(ns), artifact.Config{Namespace: ns, Keyset: keyset, TTL: time.Hour}))(t)
	})
	if !slices.Equal(fake, want) {
		t.Errorf("the fake answers\n%q, the database\n%q", fake, want)
	}
}

// exerciseArtifacts lists what a store answers about artifacts of two namespaces.
func exerciseArtifacts(t *testing.T, open func(review.Namespace) artifacts) (steps []string) {
	t.Helper()
	note := func(what string, err error, seen ...any) {
		class := failure.Class("")
		if err != nil {
			class = failure.ClassOf(err)
		}
		steps = append(steps, fmt.Sprintf("%s: %s %v", what, class, seen))
	}
	raw, report := open(review.NamespaceRaw), open(review.NamespaceReport)
	mine, other := review.Owner{Changelist: 4711, Version: 1}, review.Owner{Changelist: 4711, Version: 2}
	put := func(in artifacts, of review.Owner, body []byte) review.ArtifactRef {
		ref, err := in.Put(t.Context(), of, body)
		note("put", err, len(ref))
		return ref
	}
	get := func(in artifacts, of review.Owner, ref review.ArtifactRef) {
		body, err := in.Get(t.Context(), of, ref)
		note("get", err, string(body))
	}
	body := []byte("diff")
	first := put(raw, mine, body)
	copy(body, "lost") // the store has its own copy
	again, ofOther, empty, reported := put(raw, mine, []byte("diff")), put(raw, other, []byte("diff")), put(raw, mine, nil), put(report, mine, []byte("diff"))
	note("references", nil, first == again, first == ofOther, first == empty, first[3:] == reported[6:])
	get(raw, mine, first)
	get(raw, mine, empty)
	get(raw, other, first)
	get(raw, review.Owner{}, first)
	get(report, mine, first)
	get(raw, mine, reported)
	get(raw, mine, "raw:ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff")
	get(raw, mine, "")
	for _, answer := range []string{"", "first", "second"} {
		if answer != "" {
			note("put as", raw.PutAs(t.Context(), "name", []byte(answer)))
		}
		body, err := raw.GetAs(t.Context(), "name")
		note("get as", err, string(body))
	}
	_, err := report.GetAs(t.Context(), "name")
	note("get as from another namespace", err)
	return steps
}
