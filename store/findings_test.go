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

// An operator's decision holds for the same finding in later versions, which may have moved
// or changed a little, and neither for another one nor for a worse severity.
func TestAcceptedFindingsAreRecognised(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	llm, operator := d.Open(t, store.RoleLLM), d.Open(t, store.RoleOperator)
	merged := leak("//depot/a.go")
	merged.Quote = "f, err := os.Open(name)\nif err != nil {\n\treturn err\n}\nreturn f.Sync()"
	merged.Places = []review.Place{leak("//depot/b.go").Place()}
	token := reported(t, llm, 1, merged)[0].FeedbackToken
	edited, elsewhere, otherKind, other, worse := merged, merged, merged, merged, merged
	edited.Quote = strings.Replace(merged.Quote, "f.Sync", "f.Flush", 1)
	elsewhere.Path = "//depot/c.go"
	edited.Places, elsewhere.Places, otherKind.Places, other.Places = nil, nil, nil, nil
	otherKind.Category = review.CategorySecurity
	other.Quote = "for i := range n {\n\tgo send(i, n)\n}"
	worse.Severity = review.SeverityCritical
	check := func(step string, want ...bool) {
		t.Helper()
		if got := must(llm.AcceptedWrong(t.Context(), []review.Finding{merged, edited, leak("//depot/b.go"), elsewhere, otherKind, other, worse}))(t); !slices.Equal(got, want) {
			t.Errorf("%s: accepted are %v, want %v", step, got, want)
		}
	}
	check("nothing is accepted", false, false, false, false, false, false, false)
	finding, err := operator.AcceptWrong(t.Context(), token, "olga@desk", "because")
	testkit.NoError(t, err)
	if finding.Path != "//depot/a.go" {
		t.Errorf("accepted %+v", finding)
	}
	check("accepted", true, true, true, false, false, false, false)
	_, err = operator.ForgetFeedback(t.Context(), token, "olga@desk", "")
	testkit.NoError(t, err)
	check("taken back", false, false, false, false, false, false, false)
	audited := query[string](t, d.Conn(t), `select string_agg(claimed || ' ' || action || ' ' || object || ' ' || detail, ';' order by id) from criticizer.audit_log`)
	for _, want := range []string{"olga@desk feedback accept finding:" + token, "olga@desk feedback forget finding:" + token, `"note": "because"`} {
		if !strings.Contains(audited, want) {
			t.Errorf("audit log lacks %q: %s", want, audited)
		}
	}
}

// A reader's answer hides nothing: later mails show it. It counts once, only from recipients
// of the review, and the newest counts.
func TestAnswersOfReaders(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	llm, notify, operator := d.Open(t, store.RoleLLM), d.Open(t, store.RoleNotify), d.Open(t, store.RoleOperator)
	_, err := d.Conn(t).Exec(t.Context(), `insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('k', 4711, 1, 's', 'r');
		insert into criticizer.recipients values (4711, 1, 0, 'ann', 'ann@corp.test', 'author'), (4711, 1, 1, '', 'team@corp.test', 'owner');
		insert into criticizer.deliveries (changelist_id, review_version, recipient) values (4711, 1, 'moved@corp.test');
		insert into criticizer.jobs (idempotency_key, changelist_id, review_version, server_id, run_id) values ('k2', 4712, 1, 's', 'r'), ('k3', 4713, 1, 's', 'r');
		insert into criticizer.outcomes (changelist_id, review_version, report, outcome, findings, stand_in, coverage, tally, of_changelist, of_version)
		values (4712, 1, 'report:1', 'findings', 1, false, '', '{}', 4711, 1), (4713, 1, 'report:2', 'findings', 1, false, '', '{}', 1, 1);
		insert into criticizer.recipients values (4712, 1, 0, 'sue', 'sue@corp.test', 'subscriber'), (4713, 1, 0, 'joe', 'joe@corp.test', 'subscriber')`)
	testkit.NoError(t, err)
	findings := reported(t, llm, 1, leak("//depot/a.go"))
	answer := func(sender string, o review.Opinion, note string, at time.Time) review.FeedbackMail {
		return review.FeedbackMail{Sender: sender, Feedback: review.Feedback{Token: findings[0].FeedbackToken, Opinion: o, Note: note, At: at}}
	}
	noon := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		name string
		mail review.FeedbackMail
		want bool
	}{
		{"of a stranger", answer("eve@corp.test", review.OpinionWrong, "", noon), false},
		{"of the author", answer("Ann@corp.test", review.OpinionWrong, "the caller closes it", noon), true},
		{"read again", answer("ann@corp.test", review.OpinionWrong, "the caller closes it", noon), false},
		{"an older one", answer("ann@corp.test", review.OpinionUseful, "", noon.Add(-time.Hour)), false},
		{"of an owner", answer("team@corp.test", review.OpinionUseful, "", noon), true},
		{"of an owner, again", answer("Team@corp.test", review.OpinionUseful, "", noon), false},
		{"of another address", answer("moved@corp.test", review.OpinionUseful, "", noon), true},
		{"of a subscriber of the submit", answer("sue@corp.test", review.OpinionUseful, "", noon), true},
		{"of a subscriber of another submit", answer("joe@corp.test", review.OpinionUseful, "", noon), false},
	} {
		if got := must(notify.RecordFeedback(t.Context(), step.mail))(t); got != step.want {
			t.Errorf("%s: recorded %v, want %v", step.name, got, step.want)
		}
	}
	later := []review.Finding{leak("//depot/a.go"), leak("//depot/b.go")}
	testkit.NoError(t, notify.Dispute(t.Context(), later))
	if len(later[0].Disputed) != 1 || later[0].Disputed[0].Who != "ann" || later[0].Disputed[0].Note != "the caller closes it" || later[1].Disputed != nil {
		t.Errorf("disputed %+v", later)
	}
	if accepted := must(llm.AcceptedWrong(t.Context(), later))(t); accepted[0] {
		t.Error("an answer by mail hides the finding")
	}
	rated := must(operator.RatedFindings(t.Context(), 10))(t)
	if len(rated) != 4 || !strings.HasPrefix(rated[0].Who, "a reader ") || !strings.HasPrefix(rated[1].Who, "a reader ") || rated[2].Who != "ann" || rated[3].Who != "sue" || rated[0].AcceptedBy != "" {
		t.Errorf("opinions %+v", rated)
	}
	counts := must(operator.FindingCounts(t.Context(), 1000*time.Hour))(t)
	if len(counts) != 4 || counts[0] != (store.FindingCount{By: "all", Reported: 1, Useful: 1, Wrong: 1}) {
		t.Errorf("counted %+v", counts)
	}
}

func TestFeedbackOnATokenOfNoFinding(t *testing.T) {
	t.Parallel()
	d := storetest.New(t)
	_, err := d.Open(t, store.RoleOperator).AcceptWrong(t.Context(), "aaaaaaaaaaaaa", "olga", "")
	if failure.ClassOf(err) != failure.NotFound {
		t.Errorf("error %v", err)
	}
	if n := query[int64](t, d.Conn(t), `select count(*) from criticizer.audit_log`); n != 0 {
		t.Errorf("%d lines in the audit log", n)
	}
}
