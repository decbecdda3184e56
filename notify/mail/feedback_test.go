package mail

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// Both forms tell how to answer, with links where there are any.
func TestFindingsTellHowToAnswer(t *testing.T) {
	t.Parallel()
	const token = "abcdefg234567"
	for name, tt := range map[string]struct {
		links      review.FeedbackLinks
		text, html string
	}{
		"by command": {review.FeedbackLinks{}, "  Useful or wrong? criticizer feedback " + token + " useful|wrong\n", "Useful or wrong? <span"},
		"by mail": {
			review.FeedbackLinks{Address: "review@example.com"},
			"  wrong:  mailto:review@example.com?subject=criticizer%20feedback%20" + token + "%20wrong\n",
			`href="mailto:review@example.com?subject=criticizer%20feedback%20` + token + `%20useful"`,
		},
		"on a page": {
			review.FeedbackLinks{Address: "review@example.com", URL: "https://reviews.example.com/say?site=1"},
			"  wrong:  https://reviews.example.com/say?opinion=wrong&site=1&token=" + token + "\n",
			`href="https://reviews.example.com/say?opinion=wrong&amp;site=1&amp;token=` + token + `"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := findingsReport()
			r.Findings[0].FeedbackToken, r.Feedback = token, tt.links
			text, html, err := Bodies(r)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(text, tt.text) || strings.Count(text, "criticizer feedback ") != 1 {
				t.Errorf("the text lacks %q, or has it for a finding without a token:\n%s", tt.text, text)
			}
			if !strings.Contains(html, tt.html) {
				t.Errorf("the HTML lacks %q:\n%s", tt.html, html)
			}
		})
	}
}
