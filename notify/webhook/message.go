package webhook

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
)

// Limits of a message, in findings and characters. A message points to the
// mail and does not replace it. Slack accepts 50 blocks, 150 characters in a
// header and 3,000 in a section.
const (
	maxFindings = 10
	maxHeader   = 140
	maxTitle    = 200
	maxReason   = 1000
)

// A message has the JSON that Slack accepts. Text is for notifications and for
// services that do not support blocks.
type message struct {
	Text   string  `json:"text"`
	Blocks []block `json:"blocks"`
}

type block struct {
	Type     string `json:"type"` // header, section or context
	Text     *text  `json:"text,omitempty"`
	Elements []text `json:"elements,omitempty"`
}

// A text is always plain: text from a change or a model must not become markup
// or mention a user.
type text struct {
	Type string `json:"type"` // plain_text
	Text string `json:"text"`
}

func plain(s string) *text { return &text{"plain_text", s} }

// newMessage summarizes r with its worst findings.
func newMessage(r review.Report) message {
	title := fmt.Sprintf("CL %d: %s", r.Changelist, firstLine(r.Description))
	m := message{
		// The top-level text is always interpreted as markup.
		Text: escaper.Replace(fmt.Sprintf("[criticizer] %s: %s", title, post.Outcome(r))),
		Blocks: []block{
			{Type: "header", Text: plain(post.OneLine(title, maxHeader))},
			{Type: "section", Text: plain(summary(r))},
		},
	}
	findings, more := post.Worst(r, maxFindings)
	for _, f := range findings {
		m.Blocks = append(m.Blocks, findingBlocks(f)...)
	}
	if more > 0 {
		m.Blocks = append(m.Blocks, contextBlock(fmt.Sprintf("%d more in the mail", more)))
	}
	return m
}

func findingBlocks(f review.Finding) []block {
	blocks := []block{{Type: "section", Text: plain(fmt.Sprintf("%s | %s\n%s", f.Severity, post.Position(f), post.OneLine(f.Title, maxTitle)))}}
	if f.FeedbackToken != "" {
		blocks = append(blocks, contextBlock("useful or wrong? "+review.FeedbackCommand(f.FeedbackToken, review.OpinionUseful+"|"+review.OpinionWrong)))
	}
	return blocks
}

func contextBlock(s string) block { return block{Type: "context", Elements: []text{*plain(s)}} }

func summary(r review.Report) string {
	lines := []string{
		"Result: " + post.Outcome(r),
		fmt.Sprintf("Author: %s, version %d, reviewed %d of %d files", post.OneLine(r.Author, maxTitle), r.Version, r.FilesRead, r.FilesTotal),
	}
	if r.Reason != "" {
		lines = append(lines, "Reason: "+post.OneLine(r.Reason, maxReason))
	}
	return strings.Join(lines, "\n")
}

func firstLine(description string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return cmp.Or(post.OneLine(line, maxHeader), "(no description)")
}

// escaper removes links and mentions from markup.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
