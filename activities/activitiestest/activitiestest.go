// Package activitiestest holds hand-written fakes of everything the activities
// touch, for tests of activities and workflows. Each counts its calls and can
// be told to fail.
package activitiestest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// A World is one set of fakes that know of each other. All methods may be
// called concurrently.
type World struct {
	mu     sync.Mutex
	calls  map[string]int
	faults map[string][]error

	change    review.Change
	draft     review.Draft
	tokens    int          // that count against the review's budget
	used      review.Usage // by all attempts
	made      review.Record
	blobs     map[review.ArtifactRef][]byte
	known     []review.Recipient
	rows      []review.Delivery
	mailed    map[string]int // copies per address
	evidence  review.Evidence
	job       review.Job
	report    review.ArtifactRef            // of the finished job
	records   map[int64]*record             // of reconciliation, by row
	letters   map[string]failure.DeadLetter // by run ID
	replays   []review.Replay
	afterSend func()

	patterns []string // of which the change needs a slot each
	places   []int    // that it has until it gets them
	end      string   // of the workflow that has them

	earlier review.Prior
	shelf   *review.Prior   // the review of the shelf that read the same
	mails   []review.Report // as they were sent, in order
}

// New returns a world with one small change whose review finds one thing.
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
		blobs:    map[review.ArtifactRef][]byte{},
		mailed:   map[string]int{},
		evidence: review.Evidence{State: review.EvidenceUnknown, AskAgain: time.Now()},
		records:  map[int64]*record{},
		letters:  map[string]failure.DeadLetter{},
	}
}

// Fail makes the next len(errs) calls of op fail; a nil error lets one pass.
func (w *World) Fail(op string, errs ...error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults[op] = append(w.faults[op], errs...)
}

// Calls is how often op was called.
func (w *World) Calls(op string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[op]
}

// Copies is how many messages the recipient has got.
func (w *World) Copies(address string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.mailed[address]
}

// Mails returns the reports that were accepted for sending, in order.
func (w *World) Mails() []review.Report {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]review.Report(nil), w.mails...)
}

// SetEvidence decides what look-ups answer for messages that were not accepted.
func (w *World) SetEvidence(e review.Evidence) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.evidence = e
}

// AfterSend is called once a message was accepted and before Send returns; it
// may panic, to die at that point.
func (w *World) AfterSend(f func()) { w.afterSend = f }

// Job is the job's row.
func (w *World) Job() review.Job {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.job
}

// Letter returns the dead letter recorded for the run.
func (w *World) Letter(runID string) (failure.DeadLetter, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	l, ok := w.letters[runID]
	return l, ok
}

// Letters is the number of recorded dead letters.
func (w *World) Letters() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.letters)
}

// Replays lists the replays that were begun.
func (w *World) Replays() []review.Replay {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]review.Replay(nil), w.replays...)
}

// enter counts a call of op and returns the fault it was told to have. The
// caller holds the lock.
func (w *World) enter(op string) error {
	w.calls[op]++
	if len(w.faults[op]) == 0 {
		return nil
	}
	err := w.faults[op][0]
	w.faults[op] = w.faults[op][1:]
	return err
}

// SetChange decides what p4 says.
func (w *World) SetChange(c review.Change) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.change = c
}

// Fetch fakes p4.
func (w *World) Fetch(context.Context, review.Changelist) (review.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.change, w.enter("Fetch")
}

// FetchShelf fakes p4.
func (w *World) FetchShelf(context.Context, review.Changelist) (review.Change, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.change, w.enter("FetchShelf")
}

// Artifacts fakes one namespace of the artifact store.
func (w *World) Artifacts(ns review.Namespace) *Artifacts { return &Artifacts{w, ns} }

// Artifacts is one namespace of stored bytes.
type Artifacts struct {
	w  *World
	ns review.Namespace
}

// Put stores body.
func (a *Artifacts) Put(_ context.Context, body []byte) (review.ArtifactRef, error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	ref := review.ArtifactRef(fmt.Sprintf("%s:%d", a.ns, len(a.w.blobs)))
	a.w.blobs[ref] = body
	return ref, a.w.enter("Put " + string(a.ns))
}

// Get returns what Put stored; of another namespace's ref, nothing.
func (a *Artifacts) Get(_ context.Context, ref review.ArtifactRef) ([]byte, error) {
	a.w.mu.Lock()
	defer a.w.mu.Unlock()
	if err := a.w.enter("Get " + string(a.ns)); err != nil {
		return nil, err
	}
	body, ok := a.w.blobs[ref]
	if !ok || !strings.HasPrefix(string(ref), string(a.ns)+":") {
		return nil, failure.Errorf(failure.ArtifactExpired, "artifact %s is not there", ref)
	}
	return body, nil
}
