package store_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/store"
	"github.com/criticizer/criticizer/store/storetest"
)

func leak(path string) review.Finding {
	return review.Finding{
		Path: path, Rule: "go", Category: review.CategoryErrorHandling, Severity: review.SeverityHigh, Title: "leak", Quote: "defer f.Close()",
	}
}

func reported(t *testing.T, db *store.DB, v review.Version, findings ...review.Finding) []review.Finding {
	t.Helper()
	return must(db.ReportFindings(t.Context(), 4711, v, findings))(t)
}

func TestTokensAreTheSameInEveryAttempt(t *testing.T) {
	t.Parallel()
	db := storetest.New(t).Open(t, store.RoleLLM)
	first := reported(t, db, 1, leak("//depot/a.go"), leak("//depot/b.go"))
	again := reported(t, db, 1, leak("//depot/b.go"), leak("//depot/a.go"))
	rerun := reported(t, db, 2, leak("//depot/a.go"))
	if first[0].FeedbackToken != again[1].FeedbackToken || first[1].FeedbackToken != again[0].FeedbackToken {
		t.Errorf("another attempt has tokens %+v, the first %+v", again, first)
	}
	if rerun[0].FeedbackToken == first[0].FeedbackToken || first[0].FeedbackToken == first[1].FeedbackToken {
		t.Error("two findings, or two versions, share a token")
	}
	if _, ok := review.ParseFeedbackToken(first[0].FeedbackToken); !ok {
		t.Errorf("%q is not a token", first[0].FeedbackToken)
	}
}

func TestWhatIsMarkedWrongIsKnownUntilThatIsTakenBack(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	llm, operator := d.Open(t, store.RoleLLM), d.Open(t, store.RoleOperator)
	merged := leak("//depot/a.go")
	merged.Places = []review.Place{leak("//depot/b.go").Place()}
	token := reported(t, llm, 1, merged)[0].FeedbackToken
	later := reported(t, llm, 2, merged)[0].FeedbackToken
	other := reported(t, llm, 1, leak("//depot/d.go"))[0] // stays wrong
	_, _, err := operator.GiveFeedback(t.Context(), other.FeedbackToken, review.OpinionWrong, "omar", "")
	testkit.NoError(t, err)
	prints := []string{leak("//depot/a.go").Fingerprint(), leak("//depot/b.go").Fingerprint(), leak("//depot/c.go").Fingerprint()}
	for _, step := range []struct {
		name    string
		token   string
		opinion review.Opinion
		before  review.Opinion
		wrong   int
	}{
		{"useful", token, review.OpinionUseful, "", 0},
		{"a changed mind counts at every place", token, review.OpinionWrong, review.OpinionUseful, 2},
		{"twice is once", token, review.OpinionWrong, review.OpinionWrong, 2},
		{"the same finding of another version is useful", later, review.OpinionUseful, "", 0},
		{"wrong again", token, review.OpinionWrong, review.OpinionWrong, 2},
		{"taken back", token, "", review.OpinionWrong, 0},
	} {
		finding, before, err := operator.GiveFeedback(t.Context(), step.token, step.opinion, "olga@desk", "because")
		testkit.NoError(t, err)
		if before.Opinion != step.before || finding.Path != "//depot/a.go" {
			t.Errorf("%s: of %+v it was said before %+v", step.name, finding, before)
		}
		wrong := must(llm.WrongFindings(t.Context(), prints))(t)
		if len(wrong) != step.wrong || slices.Contains(wrong, prints[2]) {
			t.Errorf("%s: %d fingerprints are wrong, want %d, none of another path", step.name, len(wrong), step.wrong)
		}
	}
	if wrong, err := llm.WrongFindings(t.Context(), nil); err != nil || len(wrong) != 0 {
		t.Errorf("of no findings %d are wrong, %v", len(wrong), err)
	}
	opinions := query[string](t, d.Conn(t), `select string_agg(concat(path, ' ', opinion), ', ' order by path, review_version) from criticizer.findings`)
	if opinions != "//depot/a.go , //depot/a.go useful, //depot/d.go wrong" {
		t.Errorf("opinions are %s", opinions)
	}
	audited := query[string](t, d.Conn(t), `select string_agg(claimed || ' ' || action || ' ' || object || ' ' || detail, ';' order by id) from criticizer.audit_log`)
	for _, want := range []string{"olga@desk feedback finding:" + token, `"opinion": "wrong"`, `"before": "useful"`, `"note": "because"`} {
		if !strings.Contains(audited, want) {
			t.Errorf("audit log lacks %q: %s", want, audited)
		}
	}
}

func TestFeedbackOnATokenOfNoFinding(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	_, _, err := d.Open(t, store.RoleOperator).GiveFeedback(t.Context(), "aaaaaaaaaaaaa", review.OpinionWrong, "olga", "")
	if failure.ClassOf(err) != failure.NotFound {
		t.Errorf("error %v", err)
	}
	if n := query[int64](t, d.Conn(t), `select count(*) from criticizer.audit_log`); n != 0 {
		t.Errorf("%d lines in the audit log", n)
	}
}

func TestWrongFindingsAreListedAndCounted(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	llm, operator := d.Open(t, store.RoleLLM), d.Open(t, store.RoleOperator)
	findings := reported(t, llm, 1, leak("//depot/a.go"), leak("//depot/b.go"), leak("//depot/c.go"))
	for i, opinion := range []review.Opinion{review.OpinionWrong, review.OpinionUseful, review.OpinionUseful} {
		_, _, err := operator.GiveFeedback(t.Context(), findings[i].FeedbackToken, opinion, "olga", "it is closed by the caller")
		testkit.NoError(t, err)
	}
	all := must(operator.AllWrongFindings(t.Context()))(t)
	if len(all) != 1 || all[0].Path != "//depot/a.go" || all[0].Places != 1 || all[0].Who != "olga" || all[0].Note != "it is closed by the caller" {
		t.Errorf("not reported again: %+v", all)
	}
	counts := must(operator.FindingCounts(t.Context(), time.Hour))(t)
	want := []store.FindingCount{
		{"all", "", 3, 2, 1}, {"category", string(review.CategoryErrorHandling), 3, 2, 1}, {"rule", "go", 3, 2, 1}, {"severity", string(review.SeverityHigh), 3, 2, 1},
	}
	if !slices.Equal(counts, want) {
		t.Errorf("counted %+v, want %+v", counts, want)
	}
}
