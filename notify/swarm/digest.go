package swarm

import (
	"fmt"
	"strings"
	"time"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// Limits of a comment, in findings and characters.
const (
	maxFindings = 50
	maxLine     = 300
	maxProse    = 1500
)

// keyPrefix and a token are the last line of everything posted. Lookup searches for it.
const keyPrefix = "criticizer-key "

// runKey is the key of the test run of k. It is not that of the comment, which anyone
// who reads the comment could post first.
func runKey(k review.DeliveryKey) review.DeliveryKey {
	k.Recipient += " test run"
	return k
}

// newBody returns the text of the comment on r, the same in every attempt.
func newBody(r review.Report, token string) string {
	lines := []string{verdict(r), fmt.Sprintf("%d of %d files reviewed.", r.FilesRead, r.FilesTotal)}
	if r.Reason != "" {
		lines = append(lines, "Reason: "+escape(r.Reason, maxLine))
	}
	findings, more := post.Worst(r, maxFindings)
	for _, f := range findings {
		lines = append(lines, "",
			fmt.Sprintf("%s: %s: %s", escape(string(f.Severity), maxLine), plain.Markdown(post.Position(f)), escape(f.Title, maxLine)), escape(f.Explanation, maxProse))
	}
	if more > 0 {
		lines = append(lines, "", fmt.Sprintf("%d more in the mail.", more))
	}
	return strings.Join(append(lines, "", keyPrefix+token), "\n")
}

func verdict(r review.Report) string { return "Criticizer: " + post.Outcome(r) + "." }

// A testRun has the JSON of the API. Times are in seconds since 1970.
type testRun struct {
	Change    int64    `json:"change"`
	Version   int64    `json:"version"`
	Test      string   `json:"test"`
	Start     int64    `json:"startTime"`
	Completed int64    `json:"completedTime"`
	Status    string   `json:"status"` // pass or fail
	Messages  []string `json:"messages"`
}

// newTestRun returns a run that passes only if the review is clean.
func newTestRun(name string, at topic, r review.Report, token string) testRun {
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
		Status: status, Messages: []string{verdict(r), keyPrefix + token},
	}
}

// escape returns text of a change or a model for a comment, which Swarm renders as
// Markdown with mentions: on one line of at most limit characters.
func escape(s string, limit int) string { return plain.Markdown(plain.Line(s, limit)) }
