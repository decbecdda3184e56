package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

func TestRecentReviews(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	fetch := d.Open(t, store.RoleFetch)
	operator := d.Open(t, store.RoleOperator)
	open(t, books, v1, "run1")
	die(t, books, "run1", failure.AuthDenied)
	for cl := range review.Changelist(4) {
		open(t, books, of(cl+1), "run1")
	}
	finish(t, books, of(1))
	must(fetch.RecordContent(t.Context(), 2, 1, review.Content{SkippedBy: review.SkipRuleTag}))(t)
	must(books.SkipJob(t.Context(), of(2).Key, review.SkipRuleTag))(t)
	must(d.Conn(t).Exec(t.Context(), `update criticizer.jobs set created_at = now() - interval '2 hours' where changelist_id = 1`))(t)

	wantStage := func(want review.Stage) {
		t.Helper()
		found := must(operator.RecentReviews(t.Context(), store.ReviewFilter{State: review.JobInProgress, Max: 1}))(t)
		if len(found) != 1 || found[0].Stage != want {
			t.Errorf("found %+v, want stage %s", found, want)
		}
	}
	wantStage(review.StageFetch)
	testkit.NoError(t, fetch.SaveRecipients(t.Context(), 4, 1, []review.Recipient{{User: "alice", Address: "alice@corp.test", Role: review.RoleAuthor}}))
	wantStage(review.StageLLM)
	must(d.Conn(t).Exec(t.Context(), `insert into criticizer.deliveries (changelist_id, review_version, recipient) values (4, 1, 'alice@corp.test')`))(t)
	wantStage(review.StageNotify)

	for name, tt := range map[string]struct {
		filter store.ReviewFilter
		want   []review.Changelist
	}{
		"all, the newest first":   {store.ReviewFilter{}, []review.Changelist{4, 3, 2, 1, v1.Changelist}},
		"the newest two":          {store.ReviewFilter{Max: 2}, []review.Changelist{4, 3}},
		"those in progress":       {store.ReviewFilter{State: review.JobInProgress}, []review.Changelist{4, 3}},
		"the newest one that is":  {store.ReviewFilter{State: review.JobSucceeded, Max: 1}, []review.Changelist{2}},
		"clean ones":              {store.ReviewFilter{Outcome: review.OutcomeClean}, []review.Changelist{1}},
		"those of the last hour":  {store.ReviewFilter{Since: time.Hour}, []review.Changelist{4, 3, 2, v1.Changelist}},
		"clean and of this hour":  {store.ReviewFilter{Since: time.Hour, Outcome: review.OutcomeClean}, []review.Changelist{}},
		"in a state that is none": {store.ReviewFilter{State: review.JobCanceled}, []review.Changelist{}},
	} {
		if tt.filter.Max == 0 {
			tt.filter.Max = 100
		}
		found := must(operator.RecentReviews(t.Context(), tt.filter))(t)
		got := []review.Changelist{}
		for _, r := range found {
			got = append(got, r.Changelist)
			letter := r.DeadLetter != nil && r.DeadLetter.Stage == review.StageLLM && r.DeadLetter.Class == failure.AuthDenied && r.DeadLetter.State == store.DeadLetterOpen
			if letter != (r.Changelist == v1.Changelist) || (r.SkippedBy == review.SkipRuleTag) != (r.Changelist == 2) {
				t.Errorf("%s: %+v, dead letter %+v", name, r, r.DeadLetter)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// The report of a review is that of the version, or the newest there is.
func TestReportOf(t *testing.T) {
	t.Parallel()
	db, d := bookkeeping(t)
	operator := d.Open(t, store.RoleOperator)
	for v := range review.Version(3) {
		open(t, db, version(v+1), "run1")
		if v < 2 { // the third has no report yet
			finishAs(t, db, version(v+1), review.OutcomeFindings, 1, review.ArtifactRef(fmt.Sprint("report:", v+1)))
		}
	}
	for v, want := range []review.ArtifactRef{"report:2", "report:1", "report:2", ""} {
		got, err := operator.ReportOf(t.Context(), v1.Changelist, review.Version(v))
		if got != want || (want == "") != (failure.ClassOf(err) == failure.NotFound) {
			t.Errorf("version %d: %q, %v", v, got, err)
		}
	}
}

// A review by a stand-in is marked, and so is the submit that has adopted its report.
func TestStandIns(t *testing.T) {
	t.Parallel()
	books, d := bookkeeping(t)
	llm, fetch, notify := d.Open(t, store.RoleLLM), d.Open(t, store.RoleFetch), d.Open(t, store.RoleNotify)
	shelf := must(books.ReserveShelf(t.Context(), "p4", 1, "event", "run1"))(t)
	for _, cl := range []review.Changelist{2, 3} {
		open(t, books, of(cl), "run1")
		must(fetch.RecordContent(t.Context(), cl, 1, review.Content{Digest: "x", OldNumber: 1}))(t)
	}
	must(fetch.RecordContent(t.Context(), 1, 1, review.Content{Digest: "x", Shelved: true}))(t)
	must(fetch.RecordContent(t.Context(), 2, 1, review.Content{Digest: "x", OldNumber: 1}))(t)
	testkit.NoError(t, llm.RecordReview(t.Context(), review.Report{Changelist: 1, Version: 1, Outcome: review.OutcomeClean, Record: review.Record{StandIn: true}}, "report:shelf"))
	must(books.FinishJob(t.Context(), shelf.Key, "report:shelf"))(t)
	must(notify.AdoptOutcome(t.Context(), of(2).Owner(), "report:shelf"))(t)
	must(books.FinishJob(t.Context(), of(2).Key, "report:shelf"))(t)
	finish(t, books, of(3))
	operator := d.Open(t, store.RoleOperator)
	found := must(operator.RecentReviews(t.Context(), store.ReviewFilter{Max: 9}))(t)
	for _, r := range found {
		of := must(operator.Reviews(t.Context(), r.Changelist))(t)
		if want := r.Changelist != 3; r.StandIn != want || of[0].StandIn != want {
			t.Errorf("changelist %d: in the list %v, alone %v, want %v", r.Changelist, r.StandIn, of[0].StandIn, want)
		}
	}
}

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
