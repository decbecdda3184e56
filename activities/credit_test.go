package activities_test

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// before is a finding that the review of changelist 2 reported.
var before = review.Finding{
	Path: "//depot/dev/auth.c", StartLine: 3, EndLine: 3, Category: review.CategorySecurity, Severity: review.SeverityCritical,
	Title: "A second password", Explanation: "Everybody can log in.", Quote: `if (is(pw, backdoor)) return 1;`,
}

// A change that takes over reviewed content has its open findings, whatever the model says,
// and their quotes are redacted.
func TestCreditedFindingsAreReported(t *testing.T) {
	t.Parallel()
	const key = "AKIA" + "Q3EGRJXWNAPLTD5K"
	origin := review.Origin{Changelist: 2, Version: 1, Fingerprint: before.Fingerprint()}
	c := newCritic(t, review.Prices{}, review.File{
		DepotPath: "//depot/main/auth.c", Action: review.ActionBranch, Type: "text", Skipped: review.SkipIntegrated,
		Open: []review.Finding{{Title: "Reported before in change 2", Category: before.Category, Severity: before.Severity, Quote: before.Quote + " // " + key, Origin: &origin}},
	})
	c.fakes.SetDraft(review.Draft{Coverage: append(activitiestest.Read("//depot/a.go"), review.NewFileCoverage("//depot/main/auth.c", "", review.SkipIntegrated))})
	result, err := c.run()
	testkit.NoError(t, err)
	report := c.report(t, result.Report)
	if report.Outcome != review.OutcomeFindings || len(report.Findings) != 1 {
		t.Fatalf("the report is %s with %+v", report.Outcome, report.Findings)
	}
	if f := report.Findings[0]; f.Path != "//depot/main/auth.c" || *f.Origin != origin || strings.Contains(f.Quote, key) || !strings.HasPrefix(f.Quote, before.Quote) {
		t.Errorf("the finding is %+v", f)
	}
}

// The mail has the texts of the earlier report, as long as that exists.
func TestMailRecallsCreditedFindings(t *testing.T) {
	t.Parallel()
	for _, kept := range []bool{true, false} {
		m := newMailing(t)
		earlier := review.Report{Changelist: 2, Version: 1, Outcome: review.OutcomeFindings, Findings: []review.Finding{before}}
		req := review.Request{ServerID: "p4", Changelist: 2, Version: 1, Key: review.DefaultKey("p4", 2, 1)}
		_, err := m.db.OpenJob(t.Context(), req, "run")
		testkit.NoError(t, err)
		_, err = m.db.FinishJob(t.Context(), req.Key, m.db.Keep(t, earlier))
		testkit.NoError(t, err)
		origin := review.Origin{Changelist: 2, Version: 1, Fingerprint: before.Fingerprint()}
		if !kept {
			origin.Version = 7
		}
		report := findings()
		report.Findings = []review.Finding{{Path: "//depot/main/auth.c", Title: "Reported before in change 2", Explanation: "See there.", Quote: before.Quote, Origin: &origin}}
		m.input = m.db.Keep(t, report)
		if _, err := m.notify(); err != nil {
			t.Fatal(err)
		}
		want := "Reported before in change 2: A second password. Everybody can log in."
		if !kept {
			want = "Reported before in change 2. See there."
		}
		if f := m.fakes.Mails()[0].Findings[0]; f.Title+". "+f.Explanation != want || f.Path != "//depot/main/auth.c" {
			t.Errorf("the mail has %+v", f)
		}
	}
}
