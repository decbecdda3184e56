package activities_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"github.com/criticizer/criticizer/activities"
	"github.com/criticizer/criticizer/activities/activitiestest"
	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/secret"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/redaction"
	"github.com/criticizer/criticizer/review"
)

// A critic is the activity with a change that waits for it.
type critic struct {
	fakes   *activitiestest.Fakes
	db      activitiestest.Database
	reports *activitiestest.Artifacts
	stage   *activities.Model
	run     func() (activities.LLMResult, error)
}

func newCritic(t *testing.T, prices review.Prices, more ...review.File) critic {
	t.Helper()
	pipeline, err := redaction.New(redaction.Config{Key: secret.New("a key for tests, not a secret")})
	testkit.NoError(t, err)
	change, err := pipeline.Change(review.Change{Number: 4711, User: "ann", Gaps: []review.Gap{review.GapJobs}, Files: append([]review.File{
		{DepotPath: "//depot/a.go", Action: review.ActionEdit, Type: "text", Diff: "@@ -1,1 +1,2 @@\n a\n+b\n"},
	}, more...)})
	testkit.NoError(t, err)
	sealed, err := pipeline.Seal(change)
	testkit.NoError(t, err)
	w := activitiestest.New()
	c := critic{fakes: w, db: openRequest(t, w)}
	c.reports = c.db.Artifacts(t, review.NamespaceReport)
	redacted := c.db.Artifacts(t, review.NamespaceRedacted)
	ref, err := redacted.Put(t.Context(), request.Owner(), sealed)
	testkit.NoError(t, err)
	c.stage = &activities.Model{
		Redacted: redacted, Reports: c.reports, Answers: c.db.Artifacts(t, review.NamespaceAnswer), Accounts: c.db,
		Reviewer: w, Pipeline: pipeline, Prices: prices,
	}
	c.run = func() (result activities.LLMResult, err error) {
		var suite testsuite.WorkflowTestSuite
		env := suite.NewTestActivityEnvironment()
		env.RegisterActivity(c.stage)
		value, err := env.ExecuteActivity(c.stage.LLM, activities.StageParams{
			Request: review.Request{Changelist: 4711, Version: 1, Key: "k"}, Input: ref,
		})
		if err != nil {
			return result, err
		}
		return result, value.Get(&result)
	}
	return c
}

func (c critic) report(t *testing.T, ref review.ArtifactRef) (report review.Report) {
	t.Helper()
	body, err := c.reports.Get(t.Context(), request.Owner(), ref)
	testkit.NoError(t, err)
	testkit.NoError(t, json.Unmarshal(body, &report))
	return report
}

func (c critic) record(t *testing.T) review.Record {
	t.Helper()
	records, err := c.db.ReviewRecords(t.Context(), 4711)
	testkit.NoError(t, err)
	return records[1]
}

// The text of a finding and the name of the model are untrusted: a secret in them does not
// reach the report.
func TestReportHoldsNoSecretOfTheModel(t *testing.T) {
	t.Parallel()
	const key = "AKIA" + "Q3EGRJXWNAPLTD5K"
	c := newCritic(t, review.Prices{})
	c.fakes.SetDraft(review.Draft{Findings: []review.Finding{{Path: "//depot/a.go", Title: key, Explanation: key}}, Coverage: activitiestest.Read("//depot/a.go"), Record: review.Record{Model: key}})
	result, err := c.run()
	testkit.NoError(t, err)
	body, err := c.reports.Get(t.Context(), request.Owner(), result.Report)
	if record := c.record(t); err != nil || bytes.Contains(body, []byte(key)) || bytes.Contains(fmt.Append(nil, record), []byte(key)) {
		t.Errorf("report %s, record %+v, %v", body, record, err)
	}
}

// The report counts the tokens of failed attempts.
func TestCritiqueAccountsForAllAttempts(t *testing.T) {
	t.Parallel()
	c := newCritic(t, review.Prices{Prompt: 2, Completion: 10, Currency: "USD"})
	draft := review.Draft{Coverage: activitiestest.Read("//depot/a.go"), Record: review.Record{Model: "m-1", Usage: review.Usage{Calls: 1, PromptTokens: 500, CompletionTokens: 100}}}
	c.fakes.SetDraft(draft)
	c.fakes.Fail("RecordReview", failure.Errorf(failure.DatabaseUnavailable, "away"))
	if _, err := c.run(); err == nil {
		t.Fatal("the first attempt succeeded")
	}
	result, err := c.run()
	testkit.NoError(t, err)
	want := review.Usage{Calls: 2, PromptTokens: 1_000, CompletionTokens: 200}
	report, record := c.report(t, result.Report), c.record(t)
	if report.Usage != want || record.Usage != want || record.Model != "m-1" {
		t.Errorf("report says %+v, record %+v: want %+v", report.Usage, record, want)
	}
	if report.Cost == nil || *report.Cost != (review.Cost{Amount: 0.004, Currency: "USD"}) {
		t.Errorf("cost %+v, want 0.004 USD", report.Cost)
	}
}

// Report and record say that a stand-in answered, but not of a change without a call.
func TestStandInIsRecorded(t *testing.T) {
	t.Parallel()
	for calls, want := range []bool{false, true} {
		c := newCritic(t, review.Prices{})
		c.stage.StandIn = true
		c.fakes.SetDraft(review.Draft{Record: review.Record{Usage: review.Usage{Calls: calls, PromptTokens: 100 * calls}}})
		result, err := c.run()
		testkit.NoError(t, err)
		if report, record := c.report(t, result.Report), c.record(t); report.StandIn != want || record.StandIn != want || result.StandIn != want {
			t.Errorf("after %d calls report, record and result say %v, %v and %v, want %v", calls, report.StandIn, record.StandIn, result.StandIn, want)
		}
	}
}

// The report has the coverage of the draft and the gaps of the change.
func TestReportOfGaps(t *testing.T) {
	t.Parallel()
	c := newCritic(t, review.Prices{})
	covered := append(activitiestest.Read("//depot/a.go", "//depot/b.c"), review.NewFileCoverage("//depot/c.c", "", review.SkipDamaged))
	c.fakes.SetDraft(review.Draft{Coverage: covered, Record: review.Record{Usage: review.Usage{Calls: 1}}})
	result, err := c.run()
	testkit.NoError(t, err)
	report := c.report(t, result.Report)
	if result.Outcome != report.Outcome || report.Outcome != review.OutcomePartial || report.Tally().Files != 3 || !slices.Equal(report.Gaps, []review.Gap{review.GapJobs}) {
		t.Errorf("result = %+v, report = %+v", result, report)
	}
}

func TestCostIsShownOnlyIfKnown(t *testing.T) {
	t.Parallel()
	used := review.Usage{Calls: 1, PromptTokens: 500, CompletionTokens: 100}
	prices := review.Prices{Prompt: 2, Completion: 10}
	for name, test := range map[string]struct {
		prices review.Prices
		draft  review.Draft
		known  bool
	}{
		"all is known":          {prices, review.Draft{Record: review.Record{Usage: used}}, true},
		"no price":              {review.Prices{}, review.Draft{Record: review.Record{Usage: used}}, false},
		"no price of answers":   {review.Prices{Prompt: 2}, review.Draft{Record: review.Record{Usage: used}}, false},
		"no price of the cache": {prices, review.Draft{Record: review.Record{Usage: review.Usage{Calls: 1, PromptTokens: 500, CachedTokens: 1}}}, false},
		"another model":         {prices, review.Draft{Record: review.Record{Usage: used, Switches: []review.Switch{{From: "a", To: "b"}}}}, false},
		"estimated tokens":      {prices, review.Draft{Record: review.Record{Usage: review.Usage{Calls: 1, PromptTokens: 500, Estimated: true}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCritic(t, test.prices)
			c.fakes.SetDraft(test.draft)
			result, err := c.run()
			testkit.NoError(t, err)
			if cost := c.report(t, result.Report).Cost; (cost != nil) != test.known {
				t.Errorf("cost %+v", cost)
			}
		})
	}
}
