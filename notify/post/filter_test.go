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
	clean := r
	clean.Findings = nil
	for name, tc := range map[string]struct {
		filter       Filter
		found, clean bool
	}{
		"none":                        {Filter{}, true, true},
		"a folder":                    {Filter{Paths: []string{"//depot/tools/..."}}, true, true},
		"another folder":              {Filter{Paths: []string{"//depot/Other/**"}}, false, false},
		"a kind of file":              {Filter{Paths: []string{"//depot/Other/**", "*.sql"}}, true, true},
		"severity":                    {Filter{Severity: review.SeverityHigh}, true, false},
		"severity in a folder":        {Filter{Severity: review.SeverityHigh, Paths: []string{"//depot/Tools/..."}}, false, false},
		"severity that is there":      {Filter{Severity: review.SeverityMedium, Paths: []string{"//depot/Tools/..."}}, true, false},
		"an author":                   {Filter{Authors: []string{"bob", "a*"}}, true, true},
		"another author":              {Filter{Authors: []string{"bob"}}, false, false},
		"another author, in a folder": {Filter{Authors: []string{"bob"}, Paths: []string{"*.sql"}}, false, false},
	} {
		if got, gotClean := tc.filter.Wants(r), tc.filter.Wants(clean); got != tc.found || gotClean != tc.clean {
			t.Errorf("%s: with findings %t, clean %t", name, got, gotClean)
		}
	}
	for _, bad := range []Filter{{Paths: []string{"//depot/.../x"}}, {Paths: []string{""}}, {Authors: []string{"["}}} {
		var p config.Problems
		if bad.Check(&p); p.Err() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
}
