package review

import (
	"strings"
	"testing"
)

// A failure never looks like a clean review.
func TestJudge(t *testing.T) {
	t.Parallel()
	omit := func(reasons ...SkipReason) (os []Omission) {
		for _, r := range reasons {
			os = append(os, Omission{Path: "//depot/a", Reason: r})
		}
		return os
	}
	one := []Finding{{Title: "off by one"}}
	tests := map[string]struct {
		report Report
		want   Outcome
		reason string
	}{
		"all read, nothing found":         {Report{FilesTotal: 2, FilesRead: 2}, OutcomeClean, ""},
		"all read, something found":       {Report{FilesTotal: 2, FilesRead: 2, Findings: one}, OutcomeFindings, ""},
		"a deleted file is not missed":    {Report{FilesTotal: 2, FilesRead: 1, Omissions: omit(SkipDeleted)}, OutcomeClean, ""},
		"an unchanged file is not missed": {Report{FilesTotal: 2, FilesRead: 1, Omissions: omit(SkipUnchanged)}, OutcomeClean, ""},
		"a file integrated without edits is not missed": {
			Report{FilesTotal: 2, FilesRead: 1, Omissions: omit(SkipIntegrated)}, OutcomeClean, "",
		},
		"a lock file is missed": {
			Report{FilesTotal: 2, FilesRead: 1, Omissions: omit(SkipLockFile)}, OutcomePartial, "1 of 2 files were not reviewed",
		},
		"only vendored files": {
			Report{FilesTotal: 2, Omissions: omit(SkipVendored, SkipVendored)}, OutcomeNotReviewed, "no file has content that can be reviewed",
		},
		"a binary file is missed": {
			Report{FilesTotal: 2, FilesRead: 1, Omissions: omit(SkipBinary)}, OutcomePartial, "1 of 2 files were not reviewed",
		},
		"findings do not hide a missed file": {
			Report{FilesTotal: 3, FilesRead: 1, Omissions: omit(SkipTooLarge, SkipDeleted), Findings: one},
			OutcomePartial, "1 of 3 files",
		},
		"a file may be hidden": {
			Report{FilesTotal: 2, FilesRead: 2, Gaps: []Gap{GapJobs, GapHidden}}, OutcomePartial, "may have files that are hidden",
		},
		"other gaps are not files":                   {Report{FilesTotal: 2, FilesRead: 2, Gaps: []Gap{GapJobs}}, OutcomeClean, ""},
		"a file that is not accounted for is missed": {Report{FilesTotal: 3, FilesRead: 2}, OutcomePartial, "1 of 3 files"},
		"a file read and omitted is missed": {
			Report{FilesTotal: 1, FilesRead: 1, Omissions: omit(SkipOverBudget)}, OutcomePartial, "1 of 1 files",
		},
		"a file read in part, with a finding": {
			Report{FilesTotal: 1, Omissions: omit(SkipOverBudget), Findings: one}, OutcomePartial, "1 of 1 files",
		},
		"the only file has masked code": {
			Report{FilesTotal: 1, Omissions: omit(SkipMaskedCode)}, OutcomePartial, "1 of 1 files",
		},
		"no files at all": {Report{}, OutcomeNotReviewed, "no files that the service may see"},
		"none allowed": {
			Report{FilesTotal: 2, Omissions: omit(SkipNotAllowed, SkipNotAllowed)}, OutcomeNotReviewed, "path not allowed",
		},
		"none readable": {
			Report{FilesTotal: 2, Omissions: omit(SkipNotAllowed, SkipBinary)}, OutcomeNotReviewed, "no file has content",
		},
		"no tokens for any": {
			Report{FilesTotal: 2, Omissions: omit(SkipBinary, SkipOverDay)}, OutcomeNotReviewed, "over the token budget of the day",
		},
		"a remark of an unknown form": {
			Report{FilesTotal: 1, FilesRead: 1, Record: Record{Dropped: map[DropReason]int{DropInvalid: 2, DropMarker: 1}}}, OutcomePartial, "3 of the model's remarks could not be used: not in the form",
		},
		"remarks that were weighed": {
			Report{FilesTotal: 1, FilesRead: 1, Record: Record{Dropped: map[DropReason]int{DropNitpick: 1, DropMinor: 1, DropWrong: 1, DropDuplicate: 1, DropRefuted: 1}}}, OutcomeClean, "",
		},
		"only deletions":          {Report{FilesTotal: 1, Omissions: omit(SkipDeleted)}, OutcomeNotReviewed, "no file has content"},
		"none read, none omitted": {Report{FilesTotal: 1}, OutcomeNotReviewed, "no file has content"},
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
