package webhook

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/criticizer/criticizer/notify/post"
	"github.com/criticizer/criticizer/review"
	"github.com/criticizer/criticizer/review/plain"
)

// Limits of a message, in findings and characters. A message points to the
// mail and does not replace it. Slack accepts 50 blocks, 150 characters in a
// header and 3,000 in a section.
const (
	maxFindings = 10
	maxHeader   = 150
	maxTitle    = 200
	maxReason   = 1000
	maxURL      = 3000
)

// A message has the JSON that Slack accepts. Text is for notifications and for
// services that do not support blocks.
type message struct {
	Text   string  `json:"text"`
	Blocks []block `json:"blocks"`
	// Key is the same in all posts of a message.
	Key string `json:"idempotency_key"`
}

type block struct {
	Type     string `json:"type"` // header, section or context
	Text     *text  `json:"text,omitempty"`
	Elements []text `json:"elements,omitempty"`
	// Accessory is a button beside the text, nil without a link.
	Accessory *button `json:"accessory,omitempty"`
}

type button struct {
	Type string `json:"type"` // button
	Text *text  `json:"text"`
	URL  string `json:"url"`
}

// openButton returns a button with a link, nil for none or one that Slack rejects.
func openButton(link string) *button {
	if !strings.HasPrefix(link, "http") || len(link) > maxURL {
		return nil
	}
	return &button{"button", plainText("Open"), link}
}

// A text is always plain: text from a change or a model must not become markup
// or mention a user.
type text struct {
	Type string `json:"type"` // plain_text
	Text string `json:"text"`
}

func plainText(s string) *text { return &text{"plain_text", s} }

// newMessage summarizes r with its worst findings.
func newMessage(r review.Report, key string) message {
	title := fmt.Sprintf("CL %d: %s", r.Changelist, firstLine(r.Description))
	m := message{
		Key:  key,
		Text: fmt.Sprintf("[criticizer] %s: %s", title, post.Outcome(r)),
		Blocks: []block{
			{Type: "header", Text: plainText(cut(title, maxHeader))},
			{Type: "section", Text: plainText(summary(r)), Accessory: openButton(r.Links.ToChange(r.Changelist))},
		},
	}
	findings, more := post.Worst(r, maxFindings)
	for _, f := range findings {
		blocks := findingBlocks(f)
		blocks[0].Accessory = openButton(r.Links.ToFile(r.Changelist, f.Place()))
		m.Blocks = append(m.Blocks, blocks...)
	}
	if more > 0 {
		m.Blocks = append(m.Blocks, contextBlock(fmt.Sprintf("%d more in the mail", more)))
	}
	return m
}

func findingBlocks(f review.Finding) []block {
	return []block{{Type: "section", Text: plainText(fmt.Sprintf("%s | %s\n%s", escape(string(f.Severity), maxTitle), escaper.Replace(post.Position(f.Place())), escape(f.Title, maxTitle)))}}
}

func contextBlock(s string) block { return block{Type: "context", Elements: []text{*plainText(s)}} }

func summary(r review.Report) string {
	lines := []string{
		"Result: " + post.Outcome(r),
		fmt.Sprintf("Author: %s, version %d. %s", escape(r.Author, maxTitle), r.Version, escape(r.Tally().Text(), maxReason)),
	}
	if r.Reason != "" {
		lines = append(lines, "Reason: "+escape(r.Reason, maxReason))
	}
	return strings.Join(lines, "\n")
}

func firstLine(description string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return cmp.Or(escape(line, maxHeader), "(no description)")
}

// cut returns at most limit characters of s.
func cut(s string, limit int) string {
	if r := []rune(s); len(r) > limit {
		return string(r[:limit-1]) + "…"
	}
	return s
}

// escape returns text of a change or a model for a message: on one line of at most limit
// characters. Slack takes blocks as plain text, other services take every text as
// Markdown, which has no escape that all of them know: characters are replaced.
func escape(s string, limit int) string { return escaper.Replace(plain.Line(s, limit)) }

var escaper = strings.NewReplacer("@", "(at)", "[", "(", "]", ")", "<", "‹", ">", "›", "`", "'", "&", "＆", `\`, "⧵", "#", "＃", "~", "∼")
