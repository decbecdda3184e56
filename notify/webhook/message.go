package webhook

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/criticizer/criticizer/review"
)

// How much is shown: a message is a pointer to the mail, not the mail. Slack
// takes 50 blocks, 150 characters of a header and 3000 of a section.
const (
	maxFindings = 10
	maxHeader   = 140
	maxPath     = 300
	maxTitle    = 200
	maxProse    = 1000
)

// A message is what Slack takes. Text is for notifications and for services
// that know no blocks.
type message struct {
	Text   string  `json:"text"`
	Blocks []block `json:"blocks"`
}

type block struct {
	Type     string `json:"type"` // header, section or context
	Text     *text  `json:"text,omitempty"`
	Elements []text `json:"elements,omitempty"`
}

// A text is plain: what a change or a model wrote is neither markup nor a
// mention of anybody.
type text struct {
	Type string `json:"type"` // plain_text
	Text string `json:"text"`
}

func plain(s string) *text { return &text{"plain_text", s} }

// newMessage tells r with its worst findings.
func newMessage(r review.Report) message {
	title := fmt.Sprintf("CL %d: %s", r.Changelist, firstLine(r.Description))
	m := message{
		// Services read this one as markup.
		Text: escaper.Replace(fmt.Sprintf("[criticizer] %s: %s", title, verdictOf(r))),
		Blocks: []block{
			{Type: "header", Text: plain(shown(title, maxHeader))},
			{Type: "section", Text: plain(summary(r))},
		},
	}
	findings := slices.Clone(r.Findings)
	slices.SortStableFunc(findings, func(a, b review.Finding) int {
		return cmp.Compare(slices.Index(review.Severities(), a.Severity), slices.Index(review.Severities(), b.Severity))
	})
	for _, f := range findings[:min(len(findings), maxFindings)] {
		m.Blocks = append(m.Blocks, findingBlocks(f)...)
	}
	if more := len(findings) - maxFindings; more > 0 {
		m.Blocks = append(m.Blocks, aside(fmt.Sprintf("%d more in the mail", more)))
	}
	return m
}

func findingBlocks(f review.Finding) []block {
	blocks := []block{{Type: "section", Text: plain(fmt.Sprintf("%s | %s\n%s", f.Severity, place(f), shown(f.Title, maxTitle)))}}
	if f.FeedbackToken != "" {
		blocks = append(blocks, aside("useful or wrong? "+review.FeedbackCommand(f.FeedbackToken, review.OpinionUseful+"|"+review.OpinionWrong)))
	}
	return blocks
}

func aside(s string) block { return block{Type: "context", Elements: []text{*plain(s)}} }

// verdictOf is the outcome in a few words. Only a clean review reads like one.
func verdictOf(r review.Report) string {
	switch r.Outcome {
	case review.OutcomeClean:
		return "no findings"
	case review.OutcomeFindings:
		return fmt.Sprintf("findings: %d", len(r.Findings))
	case review.OutcomePartial:
		return fmt.Sprintf("only partly reviewed, findings in that part: %d", len(r.Findings))
	}
	return "not reviewed"
}

func summary(r review.Report) string {
	lines := []string{
		"Result: " + verdictOf(r),
		fmt.Sprintf("Author: %s, version %d, reviewed %d of %d files", shown(r.Author, maxTitle), r.Version, r.FilesRead, r.FilesTotal),
	}
	if r.Reason != "" {
		lines = append(lines, "Reason: "+shown(r.Reason, maxProse))
	}
	return strings.Join(lines, "\n")
}

func place(f review.Finding) string {
	if f.StartLine < 1 {
		return shown(f.Path, maxPath)
	}
	return fmt.Sprintf("%s:%d", shown(f.Path, maxPath), f.StartLine)
}

func firstLine(description string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(description), "\n")
	return cmp.Or(shown(line, maxHeader), "(no description)")
}

// escaper takes links and mentions out of markup.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// shown is s on one line, without what cannot be seen, and at most limit runes.
func shown(s string, limit int) string {
	s = strings.Map(func(r rune) rune {
		if !unicode.IsSpace(r) && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > limit {
		return string(runes[:limit-1]) + "…"
	}
	return string(runes)
}
