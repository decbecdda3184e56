package activitiestest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// Artifacts returns one namespace of the artifact store.
func (w *World) Artifacts(ns review.Namespace) *Artifacts { return &Artifacts{w, ns} }

// Artifacts is one namespace of the artifact store.
type Artifacts struct {
	w  *World
	ns review.Namespace
}

// Put stores body for a review. The same body has the same reference.
func (a *Artifacts) Put(_ context.Context, of review.Owner, body []byte) (ref review.ArtifactRef, err error) {
	err = a.w.call("Put "+string(a.ns), func() {
		for ref = range a.w.blobs {
			if strings.HasPrefix(string(ref), string(a.ns)+":") && a.w.owners[ref] == of && bytes.Equal(a.w.blobs[ref], body) {
				return
			}
		}
		ref = review.ArtifactRef(fmt.Sprintf("%s:%012d%052d", a.ns, len(a.w.blobs), 0)) // as long as a real one
		a.w.blobs[ref], a.w.owners[ref] = slices.Clone(body), of
	})
	return ref, err
}

// Get returns what Put stored for the same review in the same namespace.
func (a *Artifacts) Get(_ context.Context, of review.Owner, ref review.ArtifactRef) (body []byte, err error) {
	var ok, own bool
	if err = a.w.call("Get "+string(a.ns), func() { body, ok = a.w.blobs[ref]; own = a.w.owners[ref] == of }); err != nil {
		return nil, err
	}
	switch {
	case !strings.HasPrefix(string(ref), string(a.ns)+":"), ok && !own:
		return nil, failure.Errorf(failure.ArtifactForeign, "artifact %s is of another review", ref)
	case !ok:
		return nil, failure.Errorf(failure.ArtifactExpired, "artifact %s is not there", ref)
	}
	return body, nil
}

// Pseudonym returns a hash of a user.
func (a *Artifacts) Pseudonym(user string) (string, error) {
	return fmt.Sprintf("%.8x", sha256.Sum256([]byte(user))), nil
}

// PutAs stores body under a name.
func (a *Artifacts) PutAs(_ context.Context, name string, body []byte) error {
	return a.w.call("Put "+string(a.ns), func() { a.w.blobs[a.named(name)] = slices.Clone(body) })
}

// GetAs returns what PutAs stored.
func (a *Artifacts) GetAs(ctx context.Context, name string) ([]byte, error) {
	return a.Get(ctx, review.Owner{}, a.named(name))
}

func (a *Artifacts) named(name string) review.ArtifactRef {
	return review.ArtifactRef(string(a.ns) + ":" + name)
}

// Keep stores the report of a review.
func (w *World) Keep(report review.Report) review.ArtifactRef {
	body, _ := json.Marshal(report) // never fails
	ref, _ := w.Artifacts(review.NamespaceReport).Put(context.Background(), report.Owner(), body)
	return ref
}
