package store_test

import (
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
)

// reserve opens a review of the shelf of changelist 4711.
func reserve(t *testing.T, db *store.DB, event string) review.Request {
	t.Helper()
	return must(db.ReserveShelf(t.Context(), "p4", 4711, event, "debounce"))(t)
}

func TestReserveShelf(t *testing.T) {
	t.Parallel()
	db, _ := bookkeeping(t)
	first, again, second := reserve(t, db, "a"), reserve(t, db, "a"), reserve(t, db, "b")
	if first.Version != 1 || !first.Shelved || first.Key != "shelf-p4-4711-v1" || first.Validate() != nil {
		t.Errorf("the first review of a shelf is %+v", first)
	}
	if again != first || second.Version != 2 {
		t.Errorf("the same event is %+v, another one %+v", again, second)
	}
	if o := open(t, db, first, "run"); o.Decision != review.DecisionRun || o.Job.Version != 1 || !o.Job.Shelved {
		t.Errorf("the reserved job opens as %+v", o)
	}
}

// A review of the shelf is unfinished until it ends; a review of the submit does not count.
func TestReviewsOfShelf(t *testing.T) {
	t.Parallel()
	db, _ := bookkeeping(t)
	first, second := reserve(t, db, "a"), reserve(t, db, "b")
	open(t, db, v1, "run")
	want := []string{first.Key, second.Key}
	for _, over := range []review.Request{first, second} {
		keys, err := db.ReviewsOfShelf(t.Context(), 4711)
		if testkit.NoError(t, err); !slices.Equal(keys, want) {
			t.Errorf("under way are %q, want %q", keys, want)
		}
		finish(t, db, over)
		want = want[1:]
	}
	if keys, err := db.ReviewsOfShelf(t.Context(), 4711); err != nil || len(keys) != 0 {
		t.Errorf("under way are %q, %v", keys, err)
	}
}

// A submit is not a rerun of the reviews of its shelf, whatever their versions; it is the only
// review of the requested version.
func TestSubmitAfterShelves(t *testing.T) {
	t.Parallel()
	db, _ := bookkeeping(t)
	reserve(t, db, "a")
	reserve(t, db, "b")
	other := v1
	other.Key = "my-own-key"
	for i, tt := range []struct {
		ask      review.Request
		decision review.Decision
		version  review.Version
	}{
		{v1, review.DecisionRun, 3}, {v1, review.DecisionRun, 3}, {other, review.DecisionDuplicate, 3},
		{version(2), review.DecisionRefused, 3}, {version(3), review.DecisionDuplicate, 3}, {version(4), review.DecisionRun, 4},
	} {
		if o := open(t, db, tt.ask, "run"); o.Decision != tt.decision || o.Job.Version != tt.version {
			t.Errorf("%d: %s is %s of version %d, want %s of %d", i, tt.ask.Key, o.Decision, o.Job.Version, tt.decision, tt.version)
		}
	}
	finish(t, db, v1)
	if o := open(t, db, v1, "run"); o.Decision != review.DecisionDuplicate || o.Job.Version != 3 {
		t.Errorf("after its success it is %+v", o)
	}
}

// A change that was never shelved costs one query and no row.
func TestNoteContentWithoutShelf(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	open(t, books, v1, "run")
	shelf, err := d.Open(t, store.RoleFetch).RecordContent(t.Context(), 4711, 1, review.Content{Digest: "x"})
	if testkit.NoError(t, err); shelf != 0 {
		t.Errorf("it was shelf %d", shelf)
	}
}

func TestSameAsShelf(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	fetch, notify := d.Open(t, store.RoleFetch), d.Open(t, store.RoleNotify)
	note := func(cl review.Changelist, v review.Version, c review.Content) *review.EarlierReview {
		t.Helper()
		must(fetch.RecordContent(t.Context(), cl, v, c))(t)
		return must(books.SameAsShelf(t.Context(), cl, v))(t)
	}
	shelf := reserve(t, books, "a")
	if same := note(4711, 1, review.Content{Digest: "x", Shelved: true}); same != nil {
		t.Errorf("the first shelf is like %+v", same)
	}
	submit := review.Request{Changelist: 4800, Version: 1, ServerID: "p4", Key: review.DefaultKey("p4", 4800, 1)}
	open(t, books, submit, "run")
	asSubmitted := review.Content{Digest: "x", OldNumber: 4711}
	if same := note(4800, 1, asSubmitted); same != nil {
		t.Errorf("a review that is not finished is %+v", same)
	}
	finishAs(t, books, shelf, review.OutcomeFindings, 1, "report:1")
	want := review.EarlierReview{Changelist: 4711, Version: 1, Report: "report:1"}
	if same := note(4800, 1, asSubmitted); same == nil || *same != want {
		t.Errorf("the submit is like %+v", same)
	}
	owner := func(report review.ArtifactRef) review.Owner {
		t.Helper()
		adopted := must(notify.AdoptOutcome(t.Context(), submit.Owner(), report))(t)
		if adopted != (report == "report:1" && must(books.SameAsShelf(t.Context(), 4800, 1))(t) != nil) {
			t.Errorf("%s is adopted: %v", report, adopted)
		}
		return must(notify.ReportOwner(t.Context(), submit.Owner(), report))(t)
	}
	if got := owner("report:1"); got != shelf.Owner() {
		t.Errorf("the report of the shelf is of %+v", got)
	}
	if got := owner("report:2"); got != submit.Owner() {
		t.Errorf("a report that no review of the shelf has is of %+v", got)
	}
	reserve(t, books, "b")
	if same := note(4711, 2, review.Content{Digest: "x", Shelved: true}); same == nil || *same != want {
		t.Errorf("the shelf, shelved again, is like %+v", same)
	}
	for name, c := range map[string]review.Content{
		"other content": {Digest: "y", OldNumber: 4711}, "unknown content": {OldNumber: 4711},
	} {
		if same := note(4800, 1, c); same != nil {
			t.Errorf("%s is like %+v", name, same)
		}
		owner("report:1")
	}
	again := submit
	again.Version, again.Key = 2, review.DefaultKey("p4", 4800, 2)
	open(t, books, again, "run")
	if same := note(4800, 2, asSubmitted); same != nil {
		t.Errorf("a rerun is like %+v", same)
	}
	earlier := must(notify.EarlierReport(t.Context(), 4800, 2))(t)
	if earlier.Until = (time.Time{}); earlier != want {
		t.Errorf("the mail follows %+v, want %+v", earlier, want)
	}
}
