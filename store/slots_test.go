package store_test

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// slots are reviews of changes to paths with a concurrency limit.
type slots struct {
	t      *testing.T
	books  *store.DB
	fetch  *store.DB
	conn   *pgx.Conn
	limits map[string]int
}

func newSlots(t *testing.T, limits map[string]int) slots {
	books, d := bookkeeping(t)
	return slots{t, books, d.Open(t, store.RoleFetch), d.Conn(t), limits}
}

// of returns the request for a review of a changelist.
func of(cl review.Changelist) review.Request {
	return review.Request{Changelist: cl, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", cl, 1)}
}

// fetched opens a review whose change is to the paths.
func (s slots) fetched(cl review.Changelist, byBot bool, patterns ...string) {
	s.t.Helper()
	open(s.t, s.books, of(cl), "run1")
	noError(s.t, s.fetch.RequireSlots(s.t.Context(), cl, 1, patterns, byBot))
}

// take acquires the slots of a review.
func (s slots) take(cl review.Changelist) (acquired bool) {
	s.t.Helper()
	acquired, err := s.books.AcquireSlots(s.t.Context(), of(cl).Key, s.limits)
	noError(s.t, err)
	return acquired
}

// holders fails unless exactly these reviews hold slots.
func (s slots) holders(what string, want ...review.Changelist) {
	s.t.Helper()
	rows, err := s.conn.Query(s.t.Context(), `select distinct changelist_id from criticizer.slots where state = 'held' order by 1`)
	noError(s.t, err)
	got, err := pgx.CollectRows(rows, pgx.RowTo[review.Changelist])
	noError(s.t, err)
	if !slices.Equal(got, want) {
		s.t.Errorf("%s: %v hold slots, want %v", what, got, want)
	}
}

// passOn passes on the slots of a review, or all, and fails unless it wakes these reviews.
func (s slots) passOn(from string, want ...review.Changelist) {
	s.t.Helper()
	var woken []string
	noError(s.t, s.books.PassOnSlots(s.t.Context(), from, s.limits, func(_ context.Context, workflowID, runID string) error {
		woken = append(woken, workflowID+" "+runID)
		return nil
	}))
	var wanted []string
	for _, cl := range want {
		wanted = append(wanted, of(cl).Key+" run1")
	}
	if !slices.Equal(woken, wanted) {
		s.t.Errorf("passing on the slots of %q woke %v, want %v", from, woken, wanted)
	}
}

func TestSlotsAreGivenInTurn(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 2})
	for cl := range review.Changelist(6) {
		s.fetched(cl+1, cl+1 == 3, "//a/...")
		s.take(cl + 1)
	}
	s.fetched(9, false, "//b/...") // which has no limit any more
	s.holders("at first", 1, 2)
	if !s.take(2) || s.take(3) || !s.take(9) {
		t.Error("a review that holds its slots, or needs none that is limited, waits, or one that waits does not")
	}
	finish(t, s.books, of(1))
	if s.take(5) || s.take(3) {
		t.Error("a review got a slot before the one in line")
	}
	s.passOn(of(1).Key, 4) // 3 is of a bot
	s.passOn(of(1).Key)
	noError(t, s.books.CancelJob(t.Context(), of(2).Key))
	noError(t, s.books.CancelJob(t.Context(), of(5).Key)) // which waits
	s.passOn(of(2).Key, 6)
	s.holders("after a success and two cancellations", 4, 6, 9)
	finish(t, s.books, of(4))
	s.passOn("", 3)
	open(t, s.books, of(10), "run1")
	if !s.take(10) {
		t.Error("a review of no such path waits")
	}
	s.fetched(11, false, "//a/...")
	s.take(11)
	s.limits["//a/..."] = 3
	s.passOn("", 11)
	s.fetched(12, false, "//a/...")
	s.take(12)
	delete(s.limits, "//a/...")
	s.passOn("", 12)
}

// A review that was given slots is woken until it has noticed: the wake-up may be lost.
func TestSlotsAreGivenUntilNoticed(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 1})
	s.fetched(1, false, "//a/...")
	s.fetched(2, false, "//a/...")
	s.take(1)
	s.take(2)
	finish(t, s.books, of(1))
	lost := errors.New("no answer")
	err := s.books.PassOnSlots(t.Context(), of(1).Key, s.limits, func(context.Context, string, string) error { return lost })
	if !errors.Is(err, lost) {
		t.Errorf("a lost wake-up is reported as %v", err)
	}
	s.passOn("") // it may still arrive
	exec(t, s.conn, `update criticizer.slots set given_at = given_at - interval '10 s' where given_at is not null`)
	s.passOn("", 2)
	if !s.take(2) {
		t.Error("the review does not hold what it was given")
	}
	s.passOn("")
}

// A review that is restarted, from the first stage or from the failed one, acquires its
// slots again.
func TestReplayTakesItsSlotsAgain(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 1})
	first := v1.Changelist
	s.fetched(first, false, "//a/...")
	s.fetched(2, false, "//a/...")
	s.take(first)
	s.take(2)
	die(t, s.books, "run1", failure.UpstreamUnavailable)
	s.passOn(of(first).Key, 2)
	replay(t, s.books, "run1", "run2")
	if s.take(first) {
		t.Error("the replay has a slot that another review holds")
	}
	finish(t, s.books, of(2))
	if !s.take(first) {
		t.Error("the replay does not get the free slot")
	}
	replay(t, s.books, "run2", "run3")
	s.fetched(3, false, "//a/...")
	if !s.take(3) || s.take(first) {
		t.Error("a review that is restarted keeps its slot")
	}
}

// A review that needs several slots gets all or none, and is not starved by reviews that
// need one.
func TestSlotsOfSeveralPaths(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 1, "//b/...": 1})
	s.fetched(1, false, "//a/...")
	s.fetched(2, false, "//a/...", "//b/...")
	s.fetched(3, false, "//b/...")
	s.fetched(4, false, "//c/...")
	for cl := range review.Changelist(4) {
		s.take(cl + 1)
	}
	s.holders("b is free, but the second's", 1, 4)
	waits := must(s.books.Waits(t.Context(), 2))(t)
	if w := waits[1]; !slices.Equal(w.For, []string{"//a/...", "//b/..."}) || w.Since.IsZero() {
		t.Errorf("the second waits for %+v", w)
	}
	must(s.conn.Exec(t.Context(), `update criticizer.slots set asked_at = asked_at - interval '90 s' where changelist_id = 2`))(t)
	use, err := s.books.SlotsInUse(t.Context())
	if longest := use["//a/..."].Longest; longest < 90*time.Second || longest > 5*time.Minute {
		t.Errorf("one has waited for %s, want 90 s and what the test took", longest)
	}
	if want := map[string]store.SlotUse{
		"//a/...": {Taken: 1, Awaited: 1, Longest: use["//a/..."].Longest, Next: "2 v1"},
		"//b/...": {Awaited: 2, Longest: use["//b/..."].Longest, Next: "2 v1"},
		"//c/...": {Taken: 1},
	}; err != nil || !maps.Equal(use, want) {
		t.Errorf("in use are %v, %v; want %v", use, err, want)
	}
	finish(t, s.books, of(1))
	s.passOn(of(1).Key, 2)
	if waits, err = s.books.Waits(t.Context(), 2); err != nil || len(waits) != 0 {
		t.Errorf("the second has its slots and waits for %v, %v", waits, err)
	}
	finish(t, s.books, of(2))
	s.passOn(of(2).Key, 3)
}

// Concurrent acquisitions and releases never exceed the limits, and leave no slot free that
// a review waits for.
func TestSlotsAreGivenOnce(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 2, "//b/...": 3})
	const reviews = 24
	needs := func(cl review.Changelist) []string {
		return [][]string{{"//a/..."}, {"//b/..."}, {"//b/...", "//a/..."}}[cl%3]
	}
	turn := make(chan review.Changelist, 2*reviews)
	number := map[string]review.Changelist{}
	for cl := range review.Changelist(reviews) {
		s.fetched(cl+1, false, needs(cl+1)...)
		number[of(cl+1).Key] = cl + 1
		turn <- cl + 1
	}
	held := map[string]*atomic.Int64{"//a/...": {}, "//b/...": {}}
	run := func(ctx context.Context, cl review.Changelist) (ended bool, err error) {
		acquired, err := s.books.AcquireSlots(ctx, of(cl).Key, s.limits)
		if err != nil || !acquired {
			return false, err
		}
		for _, pattern := range needs(cl) {
			if n := held[pattern].Add(1); n > int64(s.limits[pattern]) {
				t.Errorf("%d reviews hold a slot of %s", n, pattern)
			}
		}
		for _, pattern := range needs(cl) {
			held[pattern].Add(-1)
		}
		if _, err = s.books.FinishJob(ctx, of(cl).Key, review.OutcomeClean, 0, ""); err != nil {
			return false, err
		}
		return true, s.books.PassOnSlots(ctx, of(cl).Key, s.limits, func(_ context.Context, workflowID, _ string) error {
			turn <- number[workflowID]
			return nil
		})
	}
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	defer done()
	var left atomic.Int64
	left.Store(reviews)
	var working sync.WaitGroup
	for range 6 {
		working.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case cl := <-turn:
					ended, err := run(ctx, cl)
					if err != nil && ctx.Err() == nil {
						t.Error(err)
					}
					if ended && left.Add(-1) == 0 {
						done()
					}
				}
			}
		})
	}
	working.Wait()
	if n := left.Load(); n > 0 {
		t.Errorf("%d reviews still wait", n)
	}
}
