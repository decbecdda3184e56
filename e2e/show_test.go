package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/criticizer/criticizer/review"
)

// The report that was mailed can be had in every format, and that it was read is
// on record (security 9.4.3).
func TestReportInEveryFormat(t *testing.T) {
	t.Parallel()
	in := newInstallation(t, newDepot(t, map[string]string{"a.go": faulty}))
	in.startWorker()
	if a := in.mustStart("--wait", "1"); a.Findings == 0 {
		t.Fatalf("nothing was found: %+v", a)
	}
	checks := map[string]func(out string) bool{
		"text": func(out string) bool { return strings.Contains(out, "//depot/a.go") },
		"html": func(out string) bool { return strings.Contains(out, "<html") },
		"json": func(out string) bool {
			var report review.Report
			return json.Unmarshal([]byte(out), &report) == nil && report.Changelist == 1 && len(report.Findings) > 0
		},
		"sarif": func(out string) bool {
			log, err := sarif.FromString(out, sarif.WithStrictValidation())
			return err == nil && len(log.Runs[0].Results) > 0
		},
		"rdjson": func(out string) bool {
			var result struct{ Diagnostics []any }
			return json.Unmarshal([]byte(out), &result) == nil && len(result.Diagnostics) > 0
		},
	}
	for format, check := range checks {
		if out, err := in.run(nil, "operator", "review", "show", "1", "--format", format, "--reason", "TICKET-9"); err != nil || !check(out) {
			t.Errorf("format %s: %v\n%s", format, err, out)
		}
	}
	if n := in.countRows("audit_log", "action = 'artifact.show' and detail ->> 'reason' = 'TICKET-9'"); n != len(checks) {
		t.Errorf("%d of %d readings are on record", n, len(checks))
	}
	for _, tt := range []struct {
		args   []string
		setKey string
	}{
		{[]string{"2"}, "no such review with a report"},
		{[]string{"1", "--review-version", "2"}, "no such review with a report"},
		{[]string{"1", "--format", "pdf"}, "want text, html, json, sarif or rdjson"},
		{[]string{"x"}, "not a positive number"},
	} {
		if out, err := in.run(nil, "operator", append([]string{"review", "show"}, tt.args...)...); err == nil || !strings.Contains(out, tt.setKey) {
			t.Errorf("%v: %v, %q, want %q", tt.args, err, out, tt.setKey)
		}
	}
}
