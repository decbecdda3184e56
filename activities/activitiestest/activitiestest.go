// Package activitiestest holds hand-written fakes of everything that the activities access,
// for tests of activities and workflows. Each fake counts its calls and can be made to fail.
package activitiestest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A World is one set of fakes with common state. Its methods are safe for concurrent use.
type World struct {
	mu     sync.Mutex
	calls  map[string]int
	faults map[string][]error

	change    review.Change
	draft     review.Draft
	spent     map[review.Owner]*account
	ofDay     int // tokens of all reviews
	record    review.Record
	blobs     map[review.ArtifactRef][]byte
	owners    map[review.ArtifactRef]review.Owner
	known     map[review.Owner][]review.Recipient
	rows      []review.Delivery
	mailed    map[string][]string // the address of each copy, by message ID
	mails     []review.Report     // as sent, in order
	evidence  review.Evidence
	job       review.Job
	report    review.ArtifactRef            // of the finished job
	checks    map[int64]*check              // of reconciliation, by row
	letters   map[string]failure.DeadLetter // by run ID
	replays   []review.Replay
	afterSend func()
	patterns  []string // of which the change needs a slot each
	denials   int      // of slots, before they are acquired
	earlier   review.Prior
	shelf     *review.Prior // the review of the shelf with the same content
	reserved  []review.Request
	events    []string        // of the reserved reviews
	ended     map[string]bool // reserved reviews whose job was replaced, by key
}

// New returns a world with one small change whose review has one finding.
func New() *World {
	return &World{
		calls:  map[string]int{},
		faults: map[string][]error{},
		change: review.Change{
			Number: 4711, User: "alice", Description: "Add a retry", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Files: []review.File{{DepotPath: "//depot/a.go", Action: review.ActionEdit, Type: "text", Revision: 2, Diff: "@@ -1,1 +1,2 @@\n a\n+b\n"}},
			Recipients: []review.Recipient{
				{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor},
				{User: "bob", Address: "bob@corp.test", Role: review.RoleSubscriber},
			},
		},
		draft: review.Draft{
			Findings:  []review.Finding{{Path: "//depot/a.go", StartLine: 2, EndLine: 2, Severity: review.SeverityLow, Category: review.CategoryCorrectness, Title: "b", Quote: "b"}},
			FilesRead: 1, Model: "fake",
		},
		spent:    map[review.Owner]*account{},
		known:    map[review.Owner][]review.Recipient{},
		ended:    map[string]bool{},
		blobs:    map[review.ArtifactRef][]byte{},
		owners:   map[review.ArtifactRef]review.Owner{},
		mailed:   map[string][]string{},
		evidence: review.Evidence{State: review.EvidenceUnknown, AskAgain: time.Now()},
		checks:   map[int64]*check{},
		letters:  map[string]failure.DeadLetter{},
	}
}

// call counts a call of op. If op has no fault it runs f, which may be nil.
func (w *World) call(op string, f func()) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[op]++
	if faults := w.faults[op]; len(faults) > 0 {
		w.faults[op] = faults[1:]
		if faults[0] != nil {
			return faults[0]
		}
	}
	if f != nil {
		f()
	}
	return nil
}

func (w *World) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func get[T any](w *World, f func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f()
}

// Fail makes the next len(errs) calls of op fail; with a nil error the call succeeds.
func (w *World) Fail(op string, errs ...error) {
	w.set(func() { w.faults[op] = append(w.faults[op], errs...) })
}

// Calls is how often op was called.
func (w *World) Calls(op string) int { return get(w, func() int { return w.calls[op] }) }

// Copies is how many messages the recipient has.
func (w *World) Copies(address string) int {
	return get(w, func() (n int) {
		for _, sent := range w.mailed {
			if sent[0] == address {
				n += len(sent)
			}
		}
		return n
	})
}

// Mails returns the accepted reports, in order.
func (w *World) Mails() []review.Report {
	return get(w, func() []review.Report { return slices.Clone(w.mails) })
}

// SetEvidence sets the answer to look-ups of messages that were not accepted.
func (w *World) SetEvidence(e review.Evidence) { w.set(func() { w.evidence = e }) }

// AfterSend is called after a message is accepted and before Send returns; it may panic.
func (w *World) AfterSend(f func()) { w.afterSend = f }

// Job returns the job.
func (w *World) Job() review.Job { return get(w, func() review.Job { return w.job }) }

// Letter returns the dead letter of a run.
func (w *World) Letter(runID string) (failure.DeadLetter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, ok := w.letters[runID]
	return l, ok
}

// Letters is the number of dead letters.
func (w *World) Letters() int { return get(w, func() int { return len(w.letters) }) }

// Replays returns the replay records.
func (w *World) Replays() []review.Replay {
	return get(w, func() []review.Replay { return slices.Clone(w.replays) })
}

// SetChange sets the change that is fetched.
func (w *World) SetChange(c review.Change) { w.set(func() { w.change = c }) }

// Read implements the fetch of a changelist, "Fetch" in the calls, or of a shelf,
// "FetchShelf".
func (w *World) Read(_ context.Context, cl review.Changelist, how review.Reading) (c review.Change, err error) {
	name := "Fetch"
	if how.Shelved {
		name = "FetchShelf"
	}
	err = w.call(name, func() { c = w.change })
	c.Number = cl
	return c, err
}

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
