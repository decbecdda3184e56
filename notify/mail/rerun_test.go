package mail

import (
	"strings"
	"testing"
	"time"

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

// The mail of a submit answers that of its shelf, whatever the submit's number, and
// says what its findings are worth.
func TestSubmitAnswersTheMailOfItsShelf(t *testing.T) {
	t.Parallel()
	shelf := findingsReport()
	shelf.Changelist, shelf.Version, shelf.Shelved = 4700, 2, true
	onShelf := render(t, shelf)
	header, text, _ := parts(t, onShelf)
	if !strings.HasPrefix(header.Get("Subject"), "[criticizer] shelved CL 4700: ") || !strings.Contains(text, ", shelved 20") {
		t.Errorf("the mail of a shelf is %q\n%s", header.Get("Subject"), text)
	}
	other := findingsReport()
	other.Earlier, other.EarlierOf, other.Progress = 2, 4700, review.Compare(shelf, other)
	same := shelf
	same.Adopt(review.Request{Changelist: 4711, Version: 1}, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	same.Earlier, same.EarlierOf = 2, 4700
	for want, r := range map[string]review.Report{
		"Since the review of the shelf:":                       other,
		"Submitted as it was reviewed on the shelf: these are": same,
	} {
		header, text, html := parts(t, render(t, r))
		if header.Get("In-Reply-To") != "<"+onShelf.ID+">" || !strings.HasPrefix(header.Get("References"), "<crz1.change-4700@example.com>") {
			t.Errorf("it answers %s, in the thread %s", header.Get("In-Reply-To"), header.Get("References"))
		}
		if !strings.Contains(text, want) || !strings.Contains(html, want) || strings.HasPrefix(header.Get("Subject"), "[criticizer] shelved") {
			t.Errorf("there is no %q in %q\n%s", want, header.Get("Subject"), text)
		}
	}
	if header, text, _ := parts(t, render(t, same)); !strings.Contains(header.Get("Date"), "04 Mar 2026") || !strings.Contains(text, "submitted 2026-03-04") {
		t.Errorf("the mail of the submit is of %s:\n%s", header.Get("Date"), text)
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
