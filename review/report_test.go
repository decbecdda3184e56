package review

import (
	"slices"
	"strings"
	"testing"
)

// A failure never looks like a clean review.
func TestJudge(t *testing.T) {
	t.Parallel()
	shown := FileCoverage{"//depot/read", []Lines{{First: 1, Last: 9, State: LinesShown}, {First: 20, Last: 20, State: LinesMasked}}}
	partly := FileCoverage{"//depot/part", []Lines{{First: 1, Last: 9, State: LinesShown}, {First: 10, Last: 12, State: LinesHidden, Why: SkipOverBudget}}}
	// files returns the coverage of n files that were read, and of others with reasons.
	files := func(n int, reasons ...SkipReason) (c Coverage) {
		c = slices.Repeat(Coverage{shown}, n)
		for _, r := range reasons {
			c = append(c, NewFileCoverage("//depot/a", "", r))
		}
		return c
	}
	one := []Finding{{Title: "off by one"}}
	tests := map[string]struct {
		report Report
		want   Outcome
		reason string
	}{
		"all read, nothing found":                       {Report{Coverage: files(2)}, OutcomeClean, ""},
		"all read, something found":                     {Report{Coverage: files(2), Findings: one}, OutcomeFindings, ""},
		"a deleted file is not missed":                  {Report{Coverage: files(1, SkipDeleted)}, OutcomeClean, ""},
		"an unchanged file is not missed":               {Report{Coverage: files(1, SkipUnchanged)}, OutcomeClean, ""},
		"a file integrated without edits is not missed": {Report{Coverage: files(1, SkipIntegrated)}, OutcomeClean, ""},
		"files decided by path or type are not missed":  {Report{Coverage: files(1, SkipLockFile, SkipBinary, SkipVendored, SkipGenerated, SkipExcluded)}, OutcomeClean, ""},
		"a picture and a lock file":                     {Report{Coverage: files(0, SkipBinary, SkipLockFile)}, OutcomeClean, ""},
		"a picture and a deletion":                      {Report{Coverage: files(0, SkipBinary, SkipDeleted)}, OutcomeClean, ""},
		"only integrated files":                         {Report{Coverage: files(0, SkipIntegrated)}, OutcomeClean, ""},
		"only vendored files":                           {Report{Coverage: files(0, SkipVendored, SkipLockFile)}, OutcomeNotReviewed, "no file has content that can be reviewed"},
		"a symbolic link is missed":                     {Report{Coverage: files(1, SkipSymlink)}, OutcomePartial, "1 of 2 files were not reviewed"},
		"findings do not hide a missed file":            {Report{Coverage: files(1, SkipTooLarge, SkipDeleted), Findings: one}, OutcomePartial, "1 of 3 files"},
		"a file may be hidden":                          {Report{Coverage: files(2), Gaps: []Gap{GapJobs, GapHidden}}, OutcomePartial, "may have files that are hidden"},
		"other gaps are not files":                      {Report{Coverage: files(2), Gaps: []Gap{GapJobs}}, OutcomeClean, ""},
		"lines without a proof are missed":              {Report{Coverage: Coverage{shown, NewFileCoverage("//depot/a", "@@ -0,0 +1,1 @@\n+a\n", "")}}, OutcomePartial, "1 of 2 files"},
		"a file read in part":                           {Report{Coverage: Coverage{partly}}, OutcomePartial, "1 of 1 files"},
		"the only line is masked code":                  {Report{Coverage: files(0, SkipMaskedCode)}, OutcomeNotReviewed, "code was masked"},
		"no files at all":                               {Report{}, OutcomeNotReviewed, "no files that the service may see"},
		"none allowed":                                  {Report{Coverage: files(0, SkipNotAllowed, SkipNotAllowed)}, OutcomeNotReviewed, "path not allowed (2)"},
		"no tokens for any":                             {Report{Coverage: files(0, SkipBinary, SkipOverDay)}, OutcomeNotReviewed, "over the token budget of the day"},
		"a remark of an unknown form": {
			Report{Coverage: files(1), Record: Record{Dropped: map[DropReason]int{DropInvalid: 2, DropMarker: 1}}}, OutcomePartial, "3 of the model's remarks could not be used: not in the form",
		},
		"remarks that were weighed": {
			Report{Coverage: files(1), Record: Record{Dropped: map[DropReason]int{DropNitpick: 1, DropMinor: 1, DropWrong: 1, DropDuplicate: 1, DropRefuted: 1}}}, OutcomeClean, "",
		},
		"only deletions": {Report{Coverage: files(0, SkipDeleted)}, OutcomeNotReviewed, "no file has content"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, reason := tt.report.Judge()
			if got != tt.want || !strings.Contains(reason, tt.reason) || (reason == "") != (tt.reason == "") {
				t.Errorf("judged %s, %q; want %s, %q", got, reason, tt.want, tt.reason)
			}
		})
	}
}
