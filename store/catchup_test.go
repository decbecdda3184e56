package store_test

import (
	"slices"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

func TestCatchUpMark(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Open(t, store.RoleBookkeeping)
	want := func(since, mark review.Changelist, known bool) {
		t.Helper()
		gotSince, gotMark, gotKnown, err := db.CatchUpMark(t.Context(), "p4")
		if err != nil || gotSince != since || gotMark != mark || gotKnown != known {
			t.Errorf("got %d, %d, %v, %v; want %d, %d, %v", gotSince, gotMark, gotKnown, err, since, mark, known)
		}
	}
	raise := func(server string, mark review.Changelist) {
		t.Helper()
		testkit.NoError(t, db.RaiseCatchUpMark(t.Context(), server, mark))
	}
	want(0, 0, false)
	raise("p4", 100)
	want(100, 100, true)
	raise("p4", 150)
	raise("p4", 120) // of a slower search
	raise("edge", 7)
	want(100, 150, true)
}

func TestWithoutReview(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Open(t, store.RoleBookkeeping)
	req := review.Request{Changelist: 2, Version: 1, ServerID: "p4", Key: "k"}
	if _, err := db.OpenJob(t.Context(), req, "run"); err != nil {
		t.Fatal(err)
	}
	_, err := db.ReserveShelf(t.Context(), "p4", 3, "event", "run") // no review of the submit
	testkit.NoError(t, err)
	got, err := db.WithoutReview(t.Context(), []review.Changelist{3, 2, 1})
	if err != nil || !slices.Equal(got, []review.Changelist{1, 3}) {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := db.WithoutReview(t.Context(), nil); err != nil || len(got) != 0 {
		t.Errorf("of none: %v, %v", got, err)
	}
}
