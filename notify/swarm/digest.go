package swarm

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/criticizer/criticizer/review"
)

// How much is shown, in findings and runes.
const (
	maxFindings = 50
	maxLine     = 300
	maxProse    = 1500
)

// keyLine ends what is posted for k, and finds it again.
func keyLine(k review.DeliveryKey) string { return "criticizer-key " + k.Token() }

// newBody is the digest of r as one comment, the same in every attempt.
func newBody(r review.Report, k review.DeliveryKey) string {
	lines := []string{verdict(r), fmt.Sprintf("%d of %d files reviewed.", r.FilesRead, r.FilesTotal)}
	if r.Reason != "" {
		lines = append(lines, "Reason: "+shown(r.Reason, maxLine))
	}
	findings := slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b review.Finding) int {
		return cmp.Compare(slices.Index(review.Severities(), a.Severity), slices.Index(review.Severities(), b.Severity))
	})
	for _, f := range findings[:min(len(findings), maxFindings)] {
		lines = append(lines, "", fmt.Sprintf("%s: %s: %s", f.Severity, lineOf(f), shown(f.Title, maxLine)), shown(f.Explanation, maxProse))
	}
	if more := len(findings) - maxFindings; more > 0 {
		lines = append(lines, "", fmt.Sprintf("%d more in the mail.", more))
	}
	return strings.Join(append(lines, "", keyLine(k)), "\n")
}

func lineOf(f review.Finding) string {
	if f.StartLine < 1 {
		return shown(f.Path, maxLine)
	}
	return fmt.Sprintf("%s:%d", shown(f.Path, maxLine), f.StartLine)
}

// verdict says what came of the review. Only a clean one reads like one.
func verdict(r review.Report) string {
	switch r.Outcome {
	case review.OutcomeClean:
		return "Criticizer: no findings."
	case review.OutcomeFindings:
		return fmt.Sprintf("Criticizer: %d findings.", len(r.Findings))
	case review.OutcomePartial:
		return fmt.Sprintf("Criticizer: only partly reviewed, %d findings in that part.", len(r.Findings))
	}
	return "Criticizer: not reviewed."
}

// A testRun is one as the API has it. Times are seconds since 1970.
type testRun struct {
	Change    int64    `json:"change"`
	Version   int64    `json:"version"`
	Test      string   `json:"test"`
	Start     int64    `json:"startTime"`
	Completed int64    `json:"completedTime"`
	Status    string   `json:"status"` // pass or fail
	Messages  []string `json:"messages"`
}

// newTestRun passes for a clean review alone: what was not reviewed is no pass.
func newTestRun(name string, at place, r review.Report, k review.DeliveryKey) testRun {
	status := "fail"
	if r.Outcome == review.OutcomeClean {
		status = "pass"
	}
	ended, err := time.Parse(time.RFC3339, r.ReviewedAt)
	if err != nil {
		ended = time.Unix(0, 0)
	}
	return testRun{
		Change: int64(r.Changelist), Version: at.version, Test: name, Start: ended.Unix(), Completed: ended.Unix(),
		Status: status, Messages: []string{verdict(r), keyLine(k)},
	}
}

// tame takes mentions, links and markup out of what others wrote.
var tame = strings.NewReplacer("@", "(at)", "<", "&lt;", "[", `\[`, "`", "'", "*", `\*`, "_", `\_`, "#", `\#`)

// shown is s on one line, tamed, and at most limit runes of it.
func shown(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsSpace(r) && unicode.In(r, unicode.Cc, unicode.Cf) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > limit {
		runes = append(runes[:limit-1], '…')
	}
	return tame.Replace(string(runes))
}
