package export

import (
	"bytes"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain/plaintest"
)

// reports returns a report of each outcome.
func reports() map[string]review.Report {
	return map[string]review.Report{
		"clean":    {Changelist: 1, Version: 1, Outcome: review.OutcomeClean},
		"stand-in": {Changelist: 5, Version: 1, Outcome: review.OutcomeClean, Record: review.Record{StandIn: true}},
		"findings": {Changelist: 2, Version: 3, Links: review.Links{File: "https://swarm.example.com/files/{path}#L{line}"}, Outcome: review.OutcomeFindings, Findings: []review.Finding{
			{Path: "//depot/a b/ä%40#.c", StartLine: 3, EndLine: 4, Severity: review.SeverityCritical, Category: review.CategorySecurity, Confidence: 0.9,
				Title: "Overflow", Explanation: "It <b>runs</b> over.", Suggestion: "Check.", Quote: "x\ny", Replacement: "x\r\nz", ReplacementChecked: true,
				Places: []review.Place{{Path: "//depot/b.c", StartLine: 1, EndLine: 1, Fingerprint: "f"}}},
			{Path: "//depot/c.c", Replacement: "unchecked", Severity: review.SeverityLow, Category: review.CategoryTesting, Title: "No test"},
		}},
		"partial": {Changelist: 3, Version: 1, Outcome: review.OutcomePartial, Reason: "1 of 2 files were not reviewed",
			Coverage: review.Coverage{
				review.NewFileCoverage("//depot/d.c", "", review.SkipTooLarge),
				{Path: "//depot/e.c", Lines: []review.Lines{{First: 1, Last: 4, State: review.LinesShown}, {First: 5, Last: 6, State: review.LinesHidden, Why: review.SkipLongLine}}},
			}},
		"not reviewed": {Changelist: 4, Version: 1, Outcome: review.OutcomeNotReviewed, Reason: "path not allowed"},
	}
}

func TestSARIFIsValid(t *testing.T) {
	t.Parallel()
	for name, r := range reports() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			testkit.NoError(t, SARIF(&out, r))
			log, err := sarif.FromBytes(out.Bytes(), sarif.WithStrictValidation())
			if err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			run := log.Runs[0]
			if len(run.Results) != len(r.Findings) {
				t.Errorf("%d results of %d findings", len(run.Results), len(r.Findings))
			}
			if ok := run.Invocations[0].ExecutionSuccessful; *ok != (r.Outcome != review.OutcomeNotReviewed && !r.StandIn) {
				t.Errorf("success is %v of outcome %s", *ok, r.Outcome)
			}
		})
	}
}

// Skipped files must not look reviewed.
func TestSARIFNamesWhatWasNotReviewed(t *testing.T) {
	t.Parallel()
	log := newLog(reports()["partial"])
	notifications := log.Runs[0].Invocations[0].ToolExecutionNotifications
	if len(notifications) != 4 {
		t.Fatalf("%d notifications", len(notifications))
	}
	whole, part := notifications[2].Locations[0].PhysicalLocation, notifications[3].Locations[0].PhysicalLocation
	if *whole.ArtifactLocation.URI != "depot/d.c" || whole.Region != nil || *part.ArtifactLocation.URI != "depot/e.c" || *part.Region.StartLine != 5 {
		t.Errorf("notifications %+v", notifications)
	}
}

func TestSARIFPlaces(t *testing.T) {
	t.Parallel()
	log := newLog(reports()["findings"])
	first, second := log.Runs[0].Results[0], log.Runs[0].Results[1]
	where := first.Locations[0].PhysicalLocation
	if got := *where.ArtifactLocation.URI; got != "depot/a%20b/%C3%A4%2540%23.c" {
		t.Errorf("URI is %s", got)
	}
	if *where.Region.StartLine != 3 || *where.Region.EndLine != 4 || first.Level != "error" {
		t.Errorf("region %+v, level %s", where.Region, first.Level)
	}
	if len(first.RelatedLocations) != 1 {
		t.Errorf("%d more places", len(first.RelatedLocations))
	}
	fix := first.Fixes[0].ArtifactChanges[0]
	if code := fix.Replacements[0]; *code.InsertedContent.Text != "x\r\nz" || *code.DeletedRegion.EndLine != 4 || *fix.ArtifactLocation.URI != *where.ArtifactLocation.URI || len(second.Fixes) > 0 {
		t.Errorf("fix %+v: %q, lines to %d of %s", fix, *code.InsertedContent.Text, *code.DeletedRegion.EndLine, *fix.ArtifactLocation.URI)
	}
	if *second.HostedViewerURI != "https://swarm.example.com/files/depot/c.c" {
		t.Errorf("link %s", *second.HostedViewerURI)
	}
	if second.Locations[0].PhysicalLocation.Region != nil || second.Level != "note" {
		t.Error("a finding about a file has lines")
	}
}

func hostile(s string) review.Report {
	return review.Report{
		Changelist: 1, Version: 1, Outcome: review.OutcomeFindings, Reason: s, Coverage: review.Coverage{review.NewFileCoverage(s, "", review.SkipTooLarge)},
		Findings: []review.Finding{{Path: s, StartLine: 1, EndLine: 1, Severity: review.SeverityLow, Category: review.CategoryTesting, Title: s, Explanation: s, Suggestion: s}},
	}
}

// embedded matches a link in a message of SARIF (3.11.6): [text](target), not escaped.
var embedded = regexp.MustCompile(`(?:^|[^\\])(?:\\\\)*\[[^\]]*\]\(`)

func checkSARIF(t *testing.T, s string) {
	t.Helper()
	run := newLog(hostile(s)).Runs[0]
	texts := []string{*run.Results[0].Message.Text}
	for _, n := range run.Invocations[0].ToolExecutionNotifications {
		texts = append(texts, *n.Message.Text)
	}
	for _, x := range texts {
		plaintest.NoURLs(t, strings.NewReplacer(`\[`, "[", `\]`, "]", `\\`, `\`).Replace(x))
		if link := embedded.FindString(x); link != "" || strings.ContainsAny(x, "<>&@") {
			t.Errorf("markup in %q", x)
		}
	}
	if uri := *run.Results[0].Locations[0].PhysicalLocation.ArtifactLocation.URI; uri != "" {
		if u, err := url.Parse(uri); err != nil || u.IsAbs() || u.Host != "" {
			t.Errorf("location %q: %v", uri, err)
		}
	}
}

func TestPayloadsStayText(t *testing.T) {
	t.Parallel()
	for _, s := range plaintest.Payloads() {
		checkSARIF(t, s)
	}
}

func FuzzSARIF(f *testing.F) {
	for _, s := range plaintest.Payloads() {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if s != "" {
			checkSARIF(t, s)
		}
	})
}
