package store_test

import (
	"maps"
	"slices"
	"sync"
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
func (s slots) take(cl review.Changelist) (place int) {
	s.t.Helper()
	place, err := s.books.AcquireSlots(s.t.Context(), of(cl).Key, s.limits)
	noError(s.t, err)
	return place
}

// want acquires the slots of reviews, one after another, and fails unless the places are
// as given.
func (s slots) want(what string, places map[review.Changelist]int) {
	s.t.Helper()
	for cl, want := range places {
		if place := s.take(cl); place != want {
			s.t.Errorf("%s: review %d has place %d, want %d", what, cl, place, want)
		}
	}
}

func TestSlotsAreGivenInTurn(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 2})
	for cl := range review.Changelist(4) {
		s.fetched(cl+1, false, "//a/...")
		s.take(cl + 1)
	}
	s.fetched(9, false, "//b/...") // which has no limit any more
	s.want("at first", map[review.Changelist]int{1: 0, 2: 0, 3: 1, 4: 2, 9: 0})
	s.want("asked again", map[review.Changelist]int{4: 2, 3: 1, 2: 0})
	finish(t, s.books, of(1))
	s.want("one has ended", map[review.Changelist]int{4: 1})
	s.want("and the next was given its slot", map[review.Changelist]int{3: 0})
	noError(t, s.books.CancelJob(t.Context(), of(2).Key))
	s.want("one was canceled", map[review.Changelist]int{4: 0})
	open(t, s.books, of(10), "run1")
	s.want("one of no such path", map[review.Changelist]int{10: 0})
}

// A review that is restarted, from the first stage or from the failed one, acquires its
// slots again.
func TestReplayTakesItsSlotsAgain(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 1})
	first := v1.Changelist
	s.fetched(first, false, "//a/...")
	s.fetched(2, false, "//a/...")
	s.want("at first", map[review.Changelist]int{first: 0})
	die(t, s.books, "run1", failure.UpstreamUnavailable)
	s.want("the first died", map[review.Changelist]int{2: 0})
	replay(t, s.books, "run1", "run2")
	s.want("and is replayed", map[review.Changelist]int{first: 1})
	finish(t, s.books, of(2))
	s.want("in its turn", map[review.Changelist]int{first: 0})
	replay(t, s.books, "run2", "run3")
	s.fetched(3, false, "//a/...")
	s.want("one that is restarted has given them back", map[review.Changelist]int{3: 0})
	s.want("and waits", map[review.Changelist]int{first: 1})
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
	s.take(1)
	s.want("the second waits for a", map[review.Changelist]int{2: 1})
	s.want("b is free, but the second's", map[review.Changelist]int{3: 1, 4: 0})
	waits, err := s.books.Waits(t.Context(), 2)
	noError(t, err)
	if w := waits[1]; !slices.Equal(w.For, []string{"//a/..."}) || w.Since.IsZero() {
		t.Errorf("the second waits for %+v", w)
	}
	_, err = s.conn.Exec(t.Context(), `update criticizer.admissions set asked_at = asked_at - interval '90 s' where changelist_id = 2`)
	noError(t, err)
	use, err := s.books.SlotsInUse(t.Context())
	if longest := use["//a/..."].Longest; longest < 90*time.Second || longest > 5*time.Minute {
		t.Errorf("one has waited for %s, want 90 s and what the test took", longest)
	}
	if want := map[string]store.SlotUse{
		"//a/...": {Taken: 1, Awaited: 1, Longest: use["//a/..."].Longest, Next: "2 v1"},
		"//b/...": {Awaited: 1, Longest: use["//b/..."].Longest, Next: "3 v1"},
		"//c/...": {Taken: 1},
	}; err != nil || !maps.Equal(use, want) {
		t.Errorf("in use are %v, %v; want %v", use, err, want)
	}
	finish(t, s.books, of(1))
	s.want("a is free", map[review.Changelist]int{2: 0})
	if waits, err = s.books.Waits(t.Context(), 2); err != nil || len(waits) != 0 {
		t.Errorf("the second has its slots and waits for %v, %v", waits, err)
	}
}

func TestPeopleBeforeBots(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 1})
	s.fetched(1, false, "//a/...")
	s.fetched(2, true, "//a/...")
	s.fetched(3, false, "//a/...")
	for _, cl := range []review.Changelist{1, 2, 3} {
		s.take(cl)
	}
	s.want("a bot asked first", map[review.Changelist]int{2: 2, 3: 1})
}

// A waiting review that was terminated does not ask again and does not block others.
func TestWhoDoesNotComeBackLosesItsPlace(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 1})
	for cl := range review.Changelist(3) {
		s.fetched(cl+1, false, "//a/...")
		s.take(cl + 1)
	}
	finish(t, s.books, of(1))
	s.want("the second is expected", map[review.Changelist]int{3: 1})
	exec(t, s.conn, `update criticizer.admissions set back_by = now() - interval '1 second' where changelist_id = 2`)
	s.want("and has not come", map[review.Changelist]int{3: 0})
	s.want("and comes after all", map[review.Changelist]int{2: 1})
}

// Concurrent acquisitions never exceed the limit.
func TestSlotsAreGivenOnce(t *testing.T) {
	t.Parallel()
	s := newSlots(t, map[string]int{"//a/...": 3})
	var asking sync.WaitGroup
	var mu sync.Mutex
	admitted := 0
	for cl := range review.Changelist(12) {
		s.fetched(cl+1, false, "//a/...")
		asking.Go(func() {
			place, err := s.books.AcquireSlots(t.Context(), of(cl+1).Key, s.limits)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if place == 0 {
				admitted++
			}
		})
	}
	asking.Wait()
	if admitted != 3 {
		t.Errorf("%d reviews got one of 3 slots", admitted)
	}
}
