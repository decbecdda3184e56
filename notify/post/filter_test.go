package post

import (
	"testing"

	"github.com/criticizer/criticizer/internal/config"
	"github.com/criticizer/criticizer/review"
)

func TestFilter(t *testing.T) {
	t.Parallel()
	r := review.Report{
		Author:   "Ann",
		Coverage: review.Coverage{{Path: "//depot/Tools/a.go"}, {Path: "//depot/db/b.sql"}},
		Findings: []review.Finding{{Path: "//depot/Tools/a.go", Severity: review.SeverityMedium}, {Path: "//depot/db/b.sql", Severity: review.SeverityCritical}},
	}
	clean, partial := r, r
	clean.Findings, clean.Outcome = nil, review.OutcomeClean
	partial.Findings, partial.Outcome = nil, review.OutcomePartial
	for name, tc := range map[string]struct {
		filter                Filter
		least                 review.Severity
		found, partial, clean bool
	}{
		"none":                        {Filter{}, Clean, true, true, true},
		"low":                         {Filter{}, review.SeverityLow, true, true, false},
		"a folder":                    {Filter{Paths: []string{"//depot/tools/..."}}, Clean, true, true, true},
		"another folder":              {Filter{Paths: []string{"//depot/Other/**"}}, Clean, false, false, false},
		"a kind of file":              {Filter{Paths: []string{"//depot/Other/**", "*.sql"}}, Clean, true, true, true},
		"severity":                    {Filter{}, review.SeverityHigh, true, false, false},
		"severity in a folder":        {Filter{Paths: []string{"//depot/Tools/..."}}, review.SeverityHigh, false, false, false},
		"severity that is there":      {Filter{Paths: []string{"//depot/Tools/..."}}, review.SeverityMedium, true, false, false},
		"an author":                   {Filter{Authors: []string{"bob", "a*"}}, Clean, true, true, true},
		"another author":              {Filter{Authors: []string{"bob"}}, Clean, false, false, false},
		"another author, in a folder": {Filter{Authors: []string{"bob"}, Paths: []string{"*.sql"}}, Clean, false, false, false},
	} {
		for _, of := range []struct {
			review review.Report
			want   bool
		}{{r, tc.found}, {partial, tc.partial}, {clean, tc.clean}} {
			if got := tc.filter.Wants(of.review, tc.least); got != of.want {
				t.Errorf("%s: %s with %d findings: %t", name, of.review.Outcome, len(of.review.Findings), got)
			}
		}
	}
	for _, bad := range []Filter{{Paths: []string{"//depot/.../x"}}, {Paths: []string{""}}, {Authors: []string{"["}}} {
		var p config.Problems
		if bad.Check(&p); p.Err() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
