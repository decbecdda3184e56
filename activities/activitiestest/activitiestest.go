// Package activitiestest holds what tests of activities and workflows need: stand-ins of
// Perforce, the model and the mail server, and a real database with artifacts. Each counts
// its calls and can be made to fail.
package activitiestest

import (
	"sync"
	"time"

	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/review"
)

// Fakes are what is outside of the activities. Their methods are safe for concurrent use.
type Fakes struct {
	mu     sync.Mutex
	calls  map[string]int
	faults map[string][]error

	change    review.Change
	draft     review.Draft
	keyset    secret.Value        // of the artifacts
	mailed    map[string][]string // the address of each copy, by message ID
	mails     []review.Report     // as sent, in order
	begun     map[review.DeliveryKey]time.Time
	evidence  review.Evidence
	afterSend func()
}

// New returns fakes with one small change whose review has one finding.
func New() *Fakes {
	return &Fakes{
		calls:  map[string]int{},
		faults: map[string][]error{},
		change: review.Change{
			Number: 4711, User: "alice", Description: "Add a retry", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
			Files: []review.File{{
				DepotPath: "//depot/a.go", Action: review.ActionEdit, Type: "text", Revision: 2, SHA256: "5f", Diff: "@@ -1,1 +1,2 @@\n a\n+b\n",
			}},
			Recipients: []review.Recipient{
				{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor},
				{User: "bob", Address: "bob@corp.test", Role: review.RoleSubscriber},
			},
		},
		draft: review.Draft{
			Findings: []review.Finding{{Path: "//depot/a.go", StartLine: 2, EndLine: 2, Severity: review.SeverityLow, Category: review.CategoryCorrectness, Title: "b", Quote: "b"}},
			Coverage: Read("//depot/a.go"), Record: review.Record{Model: "fake"},
		},
		keyset:   newKeyset(),
		mailed:   map[string][]string{},
		begun:    map[review.DeliveryKey]time.Time{},
		evidence: review.Evidence{State: review.EvidenceUnknown, AskAgain: time.Now()},
	}
}

// Read returns the coverage of files of which the model read one line.
func Read(paths ...string) (c review.Coverage) {
	for _, p := range paths {
		c = append(c, review.FileCoverage{Path: p, Lines: []review.Lines{{First: 1, Last: 1, State: review.LinesShown}}})
	}
	return c
}

// call counts a call of op. If op has no fault it runs f, which may be nil.
func (w *Fakes) call(op string, f func()) error {
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

func (w *Fakes) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

func get[T any](w *Fakes, f func() T) T {
	w.mu.Lock()
	defer w.mu.Unlock()
	return f()
}

// Fail makes the next len(errs) calls of op fail; with a nil error the call succeeds.
func (w *Fakes) Fail(op string, errs ...error) {
	w.set(func() { w.faults[op] = append(w.faults[op], errs...) })
}

// Calls is how often op was called.
func (w *Fakes) Calls(op string) int { return get(w, func() int { return w.calls[op] }) }
