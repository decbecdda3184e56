package artifact

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store/storetest"
)

var hash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// fakeBlobs fakes the blobs of namespace raw; they do not expire.
type fakeBlobs struct {
	mu     sync.Mutex
	bodies map[string][]byte
	ttl    time.Duration
	fault  error
}

func (s *fakeBlobs) PutBlob(_ context.Context, id string, body []byte, ttl time.Duration) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return s.fault
	}
	if len(body) == 0 || ttl <= 0 || ttl > maxRawTTL || !hash.MatchString(id) {
		return failure.Errorf(failure.InvariantViolated, "put artifact %s of %d bytes for %s", id, len(body), ttl)
	}
	if s.bodies == nil {
		s.bodies = map[string][]byte{}
	}
	s.bodies[id], s.ttl = body, ttl
	return nil
}

func (s *fakeBlobs) Blob(_ context.Context, id string) ([]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, ok := s.bodies[id]
	if !ok {
		return nil, failure.Errorf(failure.ArtifactExpired, "no artifact %s", id)
	}
	return body, s.fault
}

// The fake accepts and returns what the database does.
func TestFakeBlobsAreThoseOfTheDatabase(t *testing.T) {
	t.Parallel()
	id := func(digit string) string { return strings.Repeat(digit, 64) }
	exercise := func(b blobs) (steps []string) {
		put := func(id, body string, ttl time.Duration) {
			err := b.PutBlob(t.Context(), id, []byte(body), ttl)
			steps = append(steps, fmt.Sprint("put ", id, body, ttl, classOf(err)))
		}
		get := func(id string) {
			body, err := b.Blob(t.Context(), id)
			steps = append(steps, fmt.Sprint("get ", id, string(body), classOf(err)))
		}
		get(id("a"))
		put(id("a"), "first", time.Hour)
		put(id("b"), "other", time.Hour)
		get(id("a"))
		put(id("a"), "second", time.Minute)
		get(id("a"))
		put(id("c"), "", time.Hour)
		put(id("c"), "x", 0)
		put(id("c"), "x", maxRawTTL+time.Second)
		put("name", "x", time.Hour)
		get(id("c"))
		get("name")
		return steps
	}
	fake, real := exercise(&fakeBlobs{}), exercise(storetest.New(t).Open(t, "").Blobs(review.NamespaceRaw))
	for i, want := range real { // both have the same steps
		if fake[i] != want {
			t.Errorf("step %d of the fake is %q, of the database %q", i, fake[i], want)
		}
	}
}

func classOf(err error) failure.Class {
	if err == nil {
		return ""
	}
	return failure.ClassOf(err)
}

func newKeyset(t *testing.T) secret.Value {
	t.Helper()
	keyset, err := NewKeyset(KEK{})
	testkit.NoError(t, err)
	return keyset
}

func newStore(t *testing.T, b blobs, ns review.Namespace, keyset secret.Value) *Store {
	t.Helper()
	s, err := New(b, Config{Namespace: ns, Keyset: keyset, TTL: time.Hour})
	testkit.NoError(t, err)
	return s
}

// owner is the review of the tests' artifacts.
var owner = review.Owner{Changelist: 4711, Version: 2}

func put(t *testing.T, s *Store, body []byte) review.ArtifactRef {
	t.Helper()
	ref, err := s.Put(t.Context(), owner, body)
	testkit.NoError(t, err)
	return ref
}

func wantClass(t *testing.T, err error, want failure.Class) {
	t.Helper()
	if got := failure.ClassOf(err); err == nil || got != want {
		t.Fatalf("error %v has class %s, want %s", err, got, want)
	}
}

func TestGetReturnsWhatWasPut(t *testing.T) {
	t.Parallel()
	s := newStore(t, &fakeBlobs{}, review.NamespaceRaw, newKeyset(t))
	for name, body := range map[string][]byte{
		"text":  []byte("package main\n"),
		"empty": {},
		"bytes": {0, 0xff, 0xfe, 0},
		"long":  bytes.Repeat([]byte("0123456789abcdef"), 1<<16),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := s.Get(t.Context(), owner, put(t, s, body))
			if err != nil || !bytes.Equal(got, body) {
				t.Fatalf("got %d bytes, %v; want %d bytes", len(got), err, len(body))
			}
		})
	}
}

func TestStoredBytesHideTheContent(t *testing.T) { // (security 9.4.2)
	t.Parallel()
	b := &fakeBlobs{}
	s := newStore(t, b, review.NamespaceRaw, newKeyset(t))
	body := bytes.Repeat([]byte("password=hunter2 "), 1000)
	ref := put(t, s, body)
	for id, stored := range b.bodies {
		if bytes.Contains(stored, []byte("hunter2")) {
			t.Error("the stored body shows the content")
		}
		if len(stored) > len(body)/10 {
			t.Errorf("stored %d bytes for %d: not compressed", len(stored), len(body))
		}
		if want := review.ArtifactRef("raw:" + id); ref != want {
			t.Errorf("ref is %s, want %s", ref, want)
		}
	}
	if b.ttl != time.Hour {
		t.Errorf("stored for %s, want 1h", b.ttl)
	}
}

func TestReferencesTellEqualityOnlyInsideOneNamespaceAndKeyset(t *testing.T) {
	t.Parallel()
	keyset := newKeyset(t)
	id := func(ns review.Namespace, keyset secret.Value) string {
		ref := put(t, newStore(t, &fakeBlobs{}, ns, keyset), []byte("same"))
		_, id, _ := strings.Cut(string(ref), ":")
		return id
	}
	first := id(review.NamespaceRaw, keyset)
	if again := id(review.NamespaceRaw, keyset); again != first {
		t.Error("the same content got two references: a retry would store it twice")
	}
	if id(review.NamespaceRedacted, keyset) == first {
		t.Error("the reference shows that raw and redacted content are equal")
	}
	if id(review.NamespaceRaw, newKeyset(t)) == first {
		t.Error("a reader without the keyset can confirm a guess of the content")
	}
}

func TestGetRefuses(t *testing.T) {
	t.Parallel()
	keyset := newKeyset(t)
	b := &fakeBlobs{}
	s := newStore(t, b, review.NamespaceRaw, keyset)
	ref := put(t, s, []byte("first"))
	_, id, _ := strings.Cut(string(ref), ":")
	other := put(t, s, []byte("second"))
	_, otherID, _ := strings.Cut(string(other), ":")

	altered := maps.Clone(b.bodies)
	altered[id] = bytes.Clone(altered[id])
	altered[id][len(altered[id])-1] ^= 1
	swapped := map[string][]byte{id: b.bodies[otherID]}
	cut := map[string][]byte{id: b.bodies[id][:10]}

	for _, tc := range []struct {
		name string
		on   *Store
		ref  review.ArtifactRef
		want failure.Class
	}{
		{"another namespace (security 9.4.4)", s, review.ArtifactRef("redacted:" + id), failure.ArtifactForeign},
		{"no namespace", s, review.ArtifactRef(id), failure.ArtifactForeign},
		{"an empty reference", s, "", failure.ArtifactForeign},
		{"an expired artifact", s, "raw:00", failure.ArtifactExpired},
		{"an altered body", newStore(t, &fakeBlobs{bodies: altered}, review.NamespaceRaw, keyset), ref, failure.ConfigInvalid},
		{"a body moved from another id", newStore(t, &fakeBlobs{bodies: swapped}, review.NamespaceRaw, keyset), ref, failure.ConfigInvalid},
		{"a body cut short", newStore(t, &fakeBlobs{bodies: cut}, review.NamespaceRaw, keyset), ref, failure.ConfigInvalid},
		{"a body moved from another namespace", newStore(t, b, review.NamespaceRedacted, keyset), review.ArtifactRef("redacted:" + id), failure.ConfigInvalid},
		{"a foreign keyset", newStore(t, b, review.NamespaceRaw, newKeyset(t)), ref, failure.ConfigInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			body, err := tc.on.Get(t.Context(), owner, tc.ref)
			wantClass(t, err, tc.want)
			if body != nil {
				t.Errorf("%d bytes came with the error", len(body))
			}
		})
	}
}

// An artifact opens for the review that it was stored for only, even if the stored form
// names another one.
func TestGetRefusesTheArtifactOfAnotherReview(t *testing.T) {
	t.Parallel()
	b := &fakeBlobs{}
	s := newStore(t, b, review.NamespaceReport, newKeyset(t))
	ref := put(t, s, []byte("of 4711"))
	_, id, _ := strings.Cut(string(ref), ":")
	_, encrypted := split(b.bodies[id])
	for _, other := range []review.Owner{{Changelist: 4712, Version: 2}, {Changelist: 4711, Version: 1}, {}} {
		_, err := s.Get(t.Context(), other, ref)
		wantClass(t, err, failure.ArtifactForeign)
		forged := newStore(t, &fakeBlobs{bodies: map[string][]byte{id: append(header(other), encrypted...)}}, review.NamespaceReport, s.cfg.Keyset)
		_, err = forged.Get(t.Context(), other, ref)
		wantClass(t, err, failure.ConfigInvalid)
	}
	unbound := newStore(t, &fakeBlobs{bodies: map[string][]byte{id: encrypted}}, review.NamespaceReport, s.cfg.Keyset)
	_, err := unbound.Get(t.Context(), owner, ref)
	wantClass(t, err, failure.ArtifactForeign)
	if same, err := s.Put(t.Context(), review.Owner{Changelist: 4712, Version: 2}, []byte("of 4711")); err != nil || same == ref {
		t.Errorf("the same content of two reviews has one reference: %v", err)
	}
	if body, err := s.Show(t.Context(), ref); err != nil || string(body) != "of 4711" {
		t.Errorf("a person reads %q, %v", body, err)
	}
}

func TestRotatedKeysetOpensOldArtifacts(t *testing.T) { // (security 9.3.5)
	t.Parallel()
	b, old := &fakeBlobs{}, newKeyset(t)
	before := put(t, newStore(t, b, review.NamespaceReport, old), []byte("sealed before"))
	rotated, err := RotateKeyset(old, KEK{})
	testkit.NoError(t, err)
	s := newStore(t, b, review.NamespaceReport, rotated)
	if body, err := s.Get(t.Context(), owner, before); err != nil || string(body) != "sealed before" {
		t.Fatalf("old artifact: got %q, %v", body, err)
	}
	after := put(t, s, []byte("sealed after"))
	_, err = newStore(t, b, review.NamespaceReport, old).Get(t.Context(), owner, after)
	wantClass(t, err, failure.ConfigInvalid)
}

// A keyset that is renewed while a store is in use encrypts later artifacts and decrypts
// earlier ones (security 9.3.5).
func TestKeysetIsRenewedInUse(t *testing.T) {
	t.Parallel()
	first := newKeyset(t)
	second, err := RotateKeyset(first, KEK{})
	testkit.NoError(t, err)
	file := filepath.Join(t.TempDir(), "keyset")
	write := func(s secret.Value) {
		testkit.NoError(t, os.WriteFile(file, []byte(s.Reveal()), 0o600))
	}
	write(first)
	keyset, err := secret.Lookup("KEYSET", func(name string) string { return map[string]string{"KEYSET_FILE": file}[name] })
	testkit.NoError(t, err)
	b := &fakeBlobs{}
	s := newStore(t, b, review.NamespaceRaw, keyset)
	before := put(t, s, []byte("before"))
	write(second)
	secret.Reload(t.Context(), slog.New(slog.DiscardHandler), []secret.Followed{{Name: "KEYSET", Value: keyset, Accept: func(ks secret.Value) error { return CheckKeyset(ks, KEK{}) }}})
	after := put(t, s, []byte("after"))
	for ref, want := range map[review.ArtifactRef]string{before: "before", after: "after"} {
		if got, err := s.Get(t.Context(), owner, ref); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", ref, got, err, want)
		}
	}
	_, err = newStore(t, b, review.NamespaceRaw, first).Get(t.Context(), owner, after)
	wantClass(t, err, failure.ConfigInvalid) // sealed by the new key
}

func TestCheckKeysetRefuses(t *testing.T) {
	t.Parallel()
	if err := CheckKeyset(newKeyset(t), KEK{}); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "{}", "not a keyset"} {
		wantClass(t, CheckKeyset(secret.New(bad), KEK{}), failure.ConfigInvalid)
	}
}

func TestPutRefuses(t *testing.T) {
	t.Parallel()
	b := &fakeBlobs{}
	s := newStore(t, b, review.NamespaceRaw, newKeyset(t))
	_, err := s.Put(t.Context(), owner, make([]byte, maxBytes+1))
	wantClass(t, err, failure.TooLarge)
	b.fault = failure.New(failure.DatabaseUnavailable, errors.New("down"))
	_, err = s.Put(t.Context(), owner, []byte("x"))
	wantClass(t, err, failure.DatabaseUnavailable)
	if len(b.bodies) != 0 {
		t.Error("it was stored all the same")
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	keyset := newKeyset(t)
	for _, tc := range []struct {
		name   string
		ns     review.Namespace
		keyset secret.Value
		ttl    time.Duration
	}{
		{"raw artifacts for more than 7 days (security 9.4.1)", review.NamespaceRaw, keyset, 7*24*time.Hour + 1},
		{"redacted artifacts for more than 30 days (security 9.4.1)", review.NamespaceRedacted, keyset, 30*24*time.Hour + 1},
		{"no time at all", review.NamespaceReport, keyset, 0},
		{"no namespace", "", keyset, time.Hour},
		{"no keyset", review.NamespaceRaw, secret.Value{}, time.Hour},
		{"a password for a keyset", review.NamespaceRaw, secret.New("hunter2"), time.Hour},
		{"a keyset without keys", review.NamespaceRaw, secret.New(`{"primaryKeyId":1,"key":[]}`), time.Hour},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			_, err := New(&fakeBlobs{}, Config{Namespace: tc.ns, Raw: tc.ns == review.NamespaceRaw, Keyset: tc.keyset, TTL: tc.ttl})
			wantClass(t, err, failure.ConfigInvalid)
			if strings.Contains(err.Error(), "hunter2") {
				t.Error("the error shows the keyset")
			}
		})
	}
}

// A pseudonym is in Temporal's history: it names a user only to those who have the keyset.
func TestPseudonyms(t *testing.T) {
	t.Parallel()
	keyset := newKeyset(t)
	names := map[string]bool{}
	for _, s := range []*Store{
		newStore(t, &fakeBlobs{}, review.NamespaceRaw, keyset), newStore(t, &fakeBlobs{}, review.NamespaceRaw, keyset), newStore(t, &fakeBlobs{}, review.NamespaceRaw, newKeyset(t)),
	} {
		for _, user := range []string{"alice", "bob"} {
			name, err := s.Pseudonym(user)
			if err != nil || len(name) != 16 {
				t.Errorf("the pseudonym of %s is %q, %v", user, name, err)
			}
			names[name] = true
		}
	}
	if len(names) != 4 {
		t.Errorf("2 users have %d pseudonyms with 2 keysets, want 4", len(names))
	}
}

func TestNamedArtifacts(t *testing.T) {
	t.Parallel()
	keyset := newKeyset(t)
	b := &fakeBlobs{}
	s := newStore(t, b, review.NamespaceAnswer, keyset)
	for i, body := range []string{"first", "second"} {
		testkit.NoError(t, s.PutAs(t.Context(), review.Owner{Changelist: review.Changelist(i + 1), Version: 1}, "question", []byte(body)))
	}
	got, err := s.GetAs(t.Context(), "question")
	if err != nil || string(got) != "second" {
		t.Errorf("got %q, error %v: want what was stored last", got, err)
	}
	if _, err := s.GetAs(t.Context(), "another"); failure.ClassOf(err) != failure.ArtifactExpired {
		t.Errorf("an unknown name: got %v", err)
	}
}
