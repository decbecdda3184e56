package store_test

import (
	"reflect"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

func TestTokensOfADayAreForAllWorkersTogether(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	var granted, refused atomic.Int32
	var workers sync.WaitGroup
	for i := range 8 {
		workers.Go(func() {
			db := d.Open(t, store.RoleLLM)
			g := must(db.ReserveTokens(t.Context(), review.Changelist(i+1), 1, 300, 1_000))(t)
			if g.Refused {
				refused.Add(1)
			} else {
				granted.Add(1)
			}
		})
	}
	workers.Wait()
	if granted.Load() != 3 || refused.Load() != 5 {
		t.Errorf("%d granted, %d refused: want three of 300 in a day of 1000", granted.Load(), refused.Load())
	}
}

func TestSettledTokensCanBeUsedAgain(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Open(t, store.RoleLLM)
	reserve := func(v review.Version, tokens int) review.Grant {
		t.Helper()
		return must(db.ReserveTokens(t.Context(), 4711, v, tokens, 1_000))(t)
	}
	settle := func(v review.Version, g review.Grant, used review.Usage) {
		t.Helper()
		testkit.NoError(t, db.SettleTokens(t.Context(), 4711, v, g, used))
	}
	wantUsage := func(v review.Version, want review.Usage, wantTokens int) {
		t.Helper()
		used, tokens, err := db.ReviewUsage(t.Context(), 4711, v)
		if testkit.NoError(t, err); used != want || tokens != wantTokens {
			t.Errorf("version %d used %+v, and %d count: want %+v and %d", v, used, tokens, want, wantTokens)
		}
	}
	wholeDay := reserve(2, 1_000)
	settle(2, wholeDay, review.Usage{Calls: 1, PromptTokens: 50, Estimated: true})
	g, rest, over := reserve(1, 900), reserve(1, 50), reserve(1, 1)
	if wholeDay.Refused || g.Refused || g.Tokens != 900 || g.Day.IsZero() || rest.Refused || !over.Refused {
		t.Fatalf("granted %+v, %+v, %+v, then %+v", wholeDay, g, rest, over)
	}
	used := review.Usage{Calls: 1, PromptTokens: 80, CompletionTokens: 20, CachedTokens: 30}
	settle(1, g, used)
	if reserve(1, 200).Refused || must(db.ReserveTokens(t.Context(), 1, 1, 1<<30, 0))(t).Refused {
		t.Error("what was settled, or has no limit, is refused")
	}
	wantUsage(1, used, 350) // with what is under way
	settle(2, review.Grant{}, review.Usage{Calls: 1, PromptTokens: 1})
	wantUsage(2, review.Usage{Calls: 2, PromptTokens: 51, Estimated: true}, 51)
}

func TestReviewRecord(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	llm, operator := d.Open(t, store.RoleLLM), d.Open(t, store.RoleOperator)
	want := review.Record{
		Model: "m-1", PromptDigest: "abc", Usage: review.Usage{Calls: 2, PromptTokens: 7},
		Anchors: map[review.Anchor]int{review.AnchorAdded: 3}, Dropped: map[review.DropReason]int{review.DropMinor: 1},
		Check: &review.Check{Checked: 2, Removed: 1}, Switches: []review.Switch{{From: "m-1", To: "m-2", Why: "CONTENT_POLICY", Calls: 1}},
		Cost: &review.Cost{Amount: 0.5, Currency: "USD"},
	}
	testkit.NoError(t, llm.RecordReview(t.Context(), review.Report{Changelist: 4711, Version: 1, Record: review.Record{Model: "first attempt"}}, "report:1"))
	testkit.NoError(t, llm.RecordReview(t.Context(), review.Report{Changelist: 4711, Version: 1, Record: want}, "report:1"))
	testkit.NoError(t, llm.RecordReview(t.Context(), review.Report{Changelist: 4713, Version: 1, Record: review.Record{Model: "of another change"}}, "report:1"))
	must(llm.ReserveTokens(t.Context(), 4711, 2, 1, 0))(t) // has no record yet
	got := must(operator.ReviewRecords(t.Context(), 4711))(t)
	if len(got) != 1 || !reflect.DeepEqual(got[1], want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	gaps := []review.Unread{{Path: "a.go", Lines: "12-40", Why: review.SkipRefused, Class: "CONTENT_POLICY", Context: "400 content_filter"}, {Path: "b.go", Lines: "1-2", Why: review.SkipOverBudget}}
	must(d.Open(t, store.RoleBookkeeping).OpenJob(t.Context(), review.Request{Changelist: 4711, Version: 1, ServerID: "p4", Key: "k"}, "run"))(t)
	for range 2 {
		testkit.NoError(t, llm.RecordReview(t.Context(), review.Report{Changelist: 4711, Version: 1, Outcome: review.OutcomePartial, Unread: gaps}, "report:2"))
	}
	must(d.Conn(t).Exec(t.Context(), `update criticizer.jobs set report = 'report:2', outcome = 'partial', findings = 0, coverage = '', state = 'succeeded', finished_at = now()`))(t)
	if got := must(operator.Gaps(t.Context(), 4711))(t); !reflect.DeepEqual(got, map[review.Version][]review.Unread{1: gaps}) {
		t.Errorf("gaps are %+v", got)
	}
	must(d.Conn(t).Exec(t.Context(), `update criticizer.gaps set recorded_at = now() - interval '31 days'`))(t)
	if _, _, err := d.Open(t, store.RoleRetention).ForgetMetadata(t.Context()); err != nil || len(must(operator.Gaps(t.Context(), 4711))(t)) != 0 {
		t.Errorf("gaps stay after 30 days, error %v", err)
	}
	none, tokens, err := llm.ReviewUsage(t.Context(), 4712, 1)
	testkit.NoError(t, err)
	if none != (review.Usage{}) || tokens != 0 {
		t.Errorf("a review that never began used %+v, %d tokens", none, tokens)
	}
}
