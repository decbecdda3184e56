package webhook

import (
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
	maxText     = 3000
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
	Type string `json:"type"` // header or section
	Text *text  `json:"text"`
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
	return &button{"button", plainText("Open", maxText), link}
}

// A text is always plain: text from a change or a model must not become markup
// or mention a user.
type text struct {
	Type string `json:"type"` // plain_text
	Text string `json:"text"`
}

func plainText(s string, limit int) *text {
	if characters := []rune(s); len(characters) > limit {
		s = string(characters[:limit-1]) + "…"
	}
	return &text{"plain_text", s}
}

// newMessage summarizes r with its worst findings.
func newMessage(r review.Report, key string) message {
	title := fmt.Sprintf("CL %d: %s", r.Changelist, escaper.Replace(post.FirstLine(r.Description, maxHeader)))
	m := message{
		Key:  key,
		Text: fmt.Sprintf("[criticizer] %s: %s", title, post.Outcome(r)),
		Blocks: []block{
			{Type: "header", Text: plainText(title, maxHeader)},
			{Type: "section", Text: plainText(summary(r), maxText), Accessory: openButton(r.Links.ToChange(r.Changelist))},
		},
	}
	findings, more := post.Worst(r, maxFindings)
	for _, f := range findings {
		about := fmt.Sprintf("%s | %s\n%s", escape(string(f.Severity), maxTitle), escaper.Replace(post.Position(f.Place())), escape(f.Title, maxTitle))
		m.Blocks = append(m.Blocks, block{"section", plainText(about, maxText), openButton(r.Links.ToFile(r.Changelist, f.Place()))})
	}
	if more > 0 {
		m.Blocks = append(m.Blocks, block{Type: "section", Text: plainText(fmt.Sprintf("%d more in the mail", more), maxText)})
	}
	return m
}

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

// escape returns text of a change or a model for a message: on one line of at most limit
// characters. Slack takes blocks as plain text, other services take every text as
// Markdown, which has no escape that all of them know: characters are replaced.
func escape(s string, limit int) string { return escaper.Replace(plain.Line(s, limit)) }

var escaper = strings.NewReplacer("://<", "(:)//‹", "://>", "(:)//›", "@", "(at)", "[", "(", "]", ")", "<", "‹", ">", "›", "`", "'", "&", "＆", `\`, "⧵", "#", "＃", "~", "∼")
