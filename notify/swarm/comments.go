package swarm

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/fix"
	"github.com/criticizer/criticizer/review/plain"
)

// Limits of a comment, in findings and characters.
const (
	maxFindings = 50
	maxLine     = 300
	maxProse    = 1500
	maxCode     = 40 // lines
	maxPlaces   = 10
)

// keyPrefix and tokens are the last line of everything posted, by which it is found again.
const keyPrefix = "criticizer-key "

// runKey is the key of the test run of k. It differs from the comment's key, because
// everyone who reads the comment could post a test run with that key first.
func runKey(k review.DeliveryKey) review.DeliveryKey {
	k.Recipient += " test run"
	return k
}

// threadKeys are the keys of a part that all versions of a review share. The key of the
// change itself is the first: a submit may have renumbered its shelf.
func threadKeys(part string, r review.Report) []review.DeliveryKey {
	keys := []review.DeliveryKey{{Changelist: r.Changelist, Recipient: "swarm " + part}}
	if r.EarlierOf != 0 && r.EarlierOf != r.Changelist {
		keys = append(keys, review.DeliveryKey{Changelist: r.EarlierOf, Recipient: "swarm " + part})
	}
	return keys
}

// newSummary returns the text of the summary of r, the same in every attempt. Its last
// line has the token of the version, the token that all versions share, and the version.
func newSummary(r review.Report, token, thread string) string {
	lines := []string{headline(r), escape(r.Tally().Text(), maxLine)}
	if r.Reason != "" {
		lines = append(lines, "Reason: "+escape(r.Reason, maxLine))
	}
	if p := r.Progress; p != nil {
		lines = append(lines, fmt.Sprintf("Since the last review: %d new, %d still open, %d resolved.", p.New, p.StillOpen, len(p.Resolved)))
	}
	if link := r.Links.ToChange(r.Changelist); link != "" {
		lines = append(lines, "<"+link+">")
	}
	findings, more := post.Worst(r, maxFindings)
	for _, f := range findings {
		lines = append(lines, "", head(f)+" ("+plain.Markdown(post.Position(f.Place()))+")")
	}
	if more > 0 {
		lines = append(lines, "", fmt.Sprintf("%d more in the mail.", more))
	}
	return strings.Join(append(lines, "", fmt.Sprintf("%s%s %s %d", keyPrefix, token, thread, r.Version)), "\n")
}

func head(f review.Finding) string {
	return fmt.Sprintf("%s: %s", escape(string(f.Severity), maxLine), escape(f.Title, maxLine))
}

// newInline returns the text of the comment on a finding, with quote and fix.
func newInline(r review.Report, f review.Finding, token string) string {
	lines := []string{head(f), plain.Markdown(post.Position(f.Place())), "", escape(f.Explanation, maxProse)}
	diff := fix.Diff(f)
	if diff == nil && f.Quote != "" {
		for l := range strings.SplitSeq(strings.Trim(f.Quote, "\n"), "\n") {
			diff = append(diff, fix.Line{Mark: ' ', Text: l})
		}
	}
	if f.Suggestion != "" {
		lines = append(lines, "", "Suggestion: "+escape(f.Suggestion, maxProse))
	}
	if f.ReplacementChecked {
		lines = append(lines, "", "Suggested fix:")
	}
	lines = append(lines, "")
	for _, l := range diff[:min(len(diff), maxCode)] {
		// Four blanks make a block of code, which no line can end.
		lines = append(lines, "    "+string(l.Mark)+" "+plain.Text(strings.ReplaceAll(l.Text, "\t", "    "), maxLine))
	}
	for _, p := range f.Places[:min(len(f.Places), maxPlaces)] {
		lines = append(lines, "", "Also at "+plain.Markdown(post.Position(p)))
	}
	if link := r.Links.ToFile(r.Changelist, f.Place()); link != "" {
		lines = append(lines, "", "<"+link+">")
	}
	return strings.Join(append(lines, "", keyPrefix+token), "\n")
}

// resolvedMark begins the comment on a finding that a later version does not have.
const resolvedMark = "Resolved in review version "

func headline(r review.Report) string { return "Criticizer: " + post.Outcome(r) + "." }

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

// newTestRun returns a run that passes if a model reviewed all files and no finding has
// the given severity or a worse one.
func newTestRun(name string, least review.Severity, at topic, r review.Report, token string) testRun {
	severe := slices.ContainsFunc(r.Findings, func(f review.Finding) bool { return f.Severity.Rank() <= least.Rank() })
	status := "fail"
	if !r.StandIn && (r.Outcome == review.OutcomeClean || r.Outcome == review.OutcomeFindings && !severe) {
		status = "pass"
	}
	ended, err := time.Parse(time.RFC3339, r.ReviewedAt)
	if err != nil {
		ended = time.Unix(0, 0)
	}
	return testRun{
		Change: int64(r.Changelist), Version: at.version, Test: name, Start: ended.Unix(), Completed: ended.Unix(),
		Status: status, Messages: []string{headline(r), keyPrefix + token},
	}
}

// escape returns text of a change or a model for a comment, which Swarm renders as
// Markdown with mentions: on one line of at most limit characters.
func escape(s string, limit int) string { return plain.Markdown(plain.Line(s, limit)) }
