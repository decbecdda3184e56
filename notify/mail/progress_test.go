package mail

import (
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/review"
)

// The mail of a rerun is in the thread of the earlier versions (notification 10.4).
func TestRerunIsInTheThreadOfTheEarlierMail(t *testing.T) {
	t.Parallel()
	earlier := findingsReport()
	earlier.Version = 3
	first, again := render(t, earlier), rerunReport()
	const root = "<crz1.change-4711@example.com>"
	header := render(t, again).Header
	if header["In-Reply-To"] != root || header["References"] != root || first.Header["References"] != root {
		t.Errorf("headers %v after %v, want the same thread", header, first.Header)
	}
	again.Progress = nil // the earlier report has expired
	m := render(t, again)
	if m.Header["In-Reply-To"] == "" || strings.Contains(m.Text+m.HTML, "version 3") {
		t.Errorf("without the earlier report, the mail is not in the thread or compares versions:\n%s", m.Text)
	}
}

// The mail of a submitted shelf is in the thread of the shelf, whatever the number
// of the changelist.
func TestSubmitRepliesToTheMailOfItsShelf(t *testing.T) {
	t.Parallel()
	shelf := findingsReport()
	shelf.Changelist, shelf.Version, shelf.Shelved = 4700, 2, true
	onShelf := render(t, shelf)
	if d := newDigest(shelf, testConfig); !strings.HasPrefix(onShelf.Subject, "[criticizer] shelved CL 4700: ") || d.Done != "shelved" {
		t.Errorf("the mail of a shelf is %q, %s", onShelf.Subject, d.Done)
	}
	changed := findingsReport()
	changed.Earlier, changed.EarlierOf, changed.Progress = 2, 4700, review.Compare(shelf, changed)
	same := shelf
	same.Adopt(review.Request{Changelist: 4711, Version: 1}, time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC))
	same.Earlier, same.EarlierOf = 2, 4700
	for name, r := range map[string]review.Report{"changed since": changed, "identical": same} {
		m, d := render(t, r), newDigest(r, testConfig)
		if m.Header["References"] != onShelf.Header["References"] || m.Header["In-Reply-To"] != "<crz1.change-4700@example.com>" {
			t.Errorf("%s: headers %v", name, m.Header)
		}
		if strings.HasPrefix(m.Subject, "[criticizer] shelved") || d.Done != "submitted" || (d.Progress == nil) == (d.Note == "") {
			t.Errorf("%s: subject %q, progress %+v, note %q", name, m.Subject, d.Progress, d.Note)
		}
	}
	if m := render(t, same); m.Date.Format(time.DateOnly) != "2026-03-04" || !strings.Contains(newDigest(same, testConfig).Submitted, "2026-03-04") {
		t.Errorf("the date of an identical submit is %s", m.Date)
	}
}
