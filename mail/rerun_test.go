package mail

import (
	"strings"
	"testing"

	"github.com/criticizer/criticizer/review"
)

// Review-notification 10.4: the mail of a rerun answers the one that the same
// recipient got of the earlier version.
func TestRerunAnswersTheEarlierMail(t *testing.T) {
	t.Parallel()
	earlier := findingsReport()
	earlier.Version = 3
	first, again := render(t, earlier), rerunReport()
	header, _, _ := parts(t, render(t, again))
	root := "<crz1.change-4711@example.com>"
	if got := header.Get("In-Reply-To"); got != "<"+first.ID+">" {
		t.Errorf("In-Reply-To is %s, want <%s>", got, first.ID)
	}
	if got := strings.Fields(header.Get("References")); len(got) != 2 || got[0] != root || got[1] != "<"+first.ID+">" {
		t.Errorf("References are %q", got)
	}
	again.Progress = nil // its report has expired
	header, text, html := parts(t, render(t, again))
	if header.Get("In-Reply-To") == "" || strings.Contains(text+html, "version 3") {
		t.Errorf("without the earlier report: not in the thread, or words about it:\n%s", text)
	}
}

func TestResolvedFindingsAreUntrusted(t *testing.T) {
	t.Parallel()
	r := rerunReport()
	r.Progress.Resolved = nil
	for range maxResolved + 2 {
		r.Progress.Resolved = append(r.Progress.Resolved, review.Finding{
			Path: "//depot/a\r\nb<script>", Title: "https://evil.example/x <b>\u202e" + strings.Repeat("y", 500),
		})
	}
	_, text, html := parts(t, render(t, r))
	for _, bad := range []string{"<script>", "https://evil.example", "\u202e", "<b>\u202e"} {
		if strings.Contains(html, bad) {
			t.Errorf("the HTML holds %q", bad)
		}
	}
	if strings.Contains(text, "https://evil.example") || !strings.Contains(text, "2 more findings") {
		t.Errorf("text is\n%s", text)
	}
}
