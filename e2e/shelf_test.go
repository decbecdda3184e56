package e2e

import (
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/criticizer/criticizer/notify/mail/inbox"
	"github.com/criticizer/criticizer/review"
)

// A shelfDepot is a depot in which alice works on one file.
type shelfDepot struct{ path string }

// sets writes the changes after the first one.
func (d shelfDepot) write(t *testing.T, changes ...string) {
	t.Helper()
	const first = "-- user alice alice@corp.test Alice --\n-- change 1 user=alice --\nBegin.\n-- add text //depot/a.go --\npackage a\n"
	next := d.path + ".next" // p4sim may be reading
	writeFile(t, next, 0o600, first+strings.Join(changes, ""))
	if err := os.Rename(next, d.path); err != nil {
		t.Fatal(err)
	}
}

// shelved is changelist 7, pending, with a body on its shelf.
func shelved(body string) string {
	return "-- change 7 user=alice pending --\nMend it.\n-- edit text shelved //depot/a.go --\n" + body
}

// submittedAs is changelist 7 submitted under a new number.
func submittedAs(number int, body string) string {
	return fmt.Sprintf("-- change %d user=alice old=7 --\nMend it.\n-- edit text //depot/a.go --\n%s", number, body)
}

func newShelfInstallation(t *testing.T) (*installation, shelfDepot) {
	t.Helper()
	depot := shelfDepot{t.TempDir() + "/depot.txtar"}
	depot.write(t)
	in := newInstallation(t, depot.path)
	in.env = append(in.env, "CRITICIZER_SHELF_QUIET=2s")
	in.startWorker()
	return in, depot
}

func (in *installation) shelve() string {
	in.t.Helper()
	out, err := in.run(nil, "starter", "shelve-commit", "--timeout=1m", "7")
	if err != nil {
		in.t.Fatal(out, err)
	}
	return out
}

// header returns a header of a mail, unfolded.
func (in *installation) header(m inbox.Entry, name string) string {
	in.t.Helper()
	head, _, _ := strings.Cut(strings.ReplaceAll(in.raw(m.ID), "\r\n", "\n"), "\n\n")
	head = strings.ReplaceAll(strings.ReplaceAll(head, "\n ", " "), "\n\t", " ")
	for line := range strings.Lines(head) {
		if value, ok := strings.CutPrefix(line, name+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Shelved twice in a row, a changelist is reviewed once, as it was last; submitted
// as it is, it is not reviewed again, and the mail follows that of the shelf.
func TestShelfThenSubmitOfTheSame(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, shelved("package a\n\nvar draft int\n"))
	in.shelve()
	depot.write(t, shelved(faulty))
	if out := in.shelve(); !strings.Contains(out, "shelf-p4-7") {
		t.Errorf("starter said %q", out)
	}
	in.waitForJobs(1)
	shelf := in.mails(7)
	if len(shelf) != 1 || !strings.Contains(shelf[0].Subject, "shelved CL 7:") || in.countRows("jobs", "shelved and outcome = 'findings' and review_version = 1") != 1 {
		t.Fatalf("the shelf was mailed as %+v; status:\n%s", shelf, in.criticizer("status", "7"))
	}
	asked := in.calls(7).model
	depot.write(t, submittedAs(9, faulty))
	if a := in.mustStart("--wait", "9"); a.Outcome != review.OutcomeFindings || a.Findings == 0 {
		t.Errorf("the submit ended as %+v", a)
	}
	submit := in.mails(9)
	if n := in.calls(9).model; n != asked || len(submit) != 1 {
		t.Fatalf("the submit cost %d model calls and %d mails", n-asked, len(submit))
	}
	if got, want := in.header(submit[0], "In-Reply-To"), in.header(shelf[0], "Message-ID"); got == "" || !strings.EqualFold(got, want) {
		t.Errorf("the submit answers %q, the shelf was %q", got, want)
	}
	if !strings.Contains(in.raw(submit[0].ID), "as it was reviewed on the shelf") {
		t.Error("the mail does not say where its findings come from")
	}
}

// A submit of something else is a review of its own, which says what is new.
func TestShelfThenSubmitOfSomethingElse(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, shelved("package a\n\nvar draft int\n"))
	in.shelve()
	in.waitForJobs(1)
	asked := in.calls(7).model
	depot.write(t, strings.Replace(submittedAs(7, faulty), " old=7", "", 1)) // keeps its number
	a := in.mustStart("--wait", "7")
	if a.Outcome != review.OutcomeFindings || in.calls(7).model == asked || in.countRows("jobs", "not shelved and review_version = 2") != 1 {
		t.Errorf("the submit ended as %+v; status:\n%s", a, in.criticizer("status", "7"))
	}
	if mails := in.mails(7); len(mails) != 2 {
		t.Errorf("%d mails", len(mails))
	}
	if again := in.mustStart("--wait", "7"); !again.Duplicate || len(in.mails(7)) != 2 {
		t.Errorf("a second start is %+v", again)
	}
}

// Shelved again while it is reviewed, a changelist's review ends at once, without a
// mail and as something that people understand; what is shelved now is reviewed.
func TestShelfThatIsReplaced(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	answer := make(chan struct{})
	let := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(let)
	var asked atomic.Int64
	wait := func() {
		asked.Add(1)
		<-answer
	}
	in.beforeAnswer.Store(&wait)
	depot.write(t, shelved("package a\n\nvar draft int\n"))
	in.shelve()
	waitFor(t, "the question about the first", func() bool { return asked.Load() == 1 })
	depot.write(t, shelved(faulty))
	in.shelve()
	waitFor(t, "the end of the first", func() bool {
		return in.countRows("jobs", "review_version = 1 and state = 'succeeded' and skipped_by like '%shelved again%'") == 1
	})
	if seen := in.calls(7); seen.mails != 0 || in.countRows("deliveries", "true") != 0 {
		t.Errorf("the replaced shelf cost %+v", seen)
	}
	let()
	in.waitForJobs(2)
	if status := in.criticizer("status", "7"); len(in.mails(7)) != 1 || in.countRows("dead_letters", "true") != 0 ||
		in.countRows("jobs", "review_version = 2 and outcome = 'findings'") != 1 || !strings.Contains(status, "shelved again before the review was over") {
		t.Errorf("%d mails; status:\n%s", len(in.mails(7)), status)
	}
}

// What is thrown away before it settles bothers nobody.
func TestShelfThatIsGone(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, "-- change 7 user=alice pending --\nMend it.\n")
	in.shelve()
	in.waitForJobs(1)
	if seen := in.calls(7); seen.model+seen.mails != 0 || in.countRows("jobs", "skipped_by is not null") != 1 {
		t.Errorf("a shelf without files cost %+v", seen)
	}
}

// While Temporal is down a shelf is kept like a submit, once.
func TestShelfIsKeptWhileTemporalIsDown(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, shelved(faulty))
	for range 2 {
		out, err := in.run([]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}, "starter", "--trigger", "shelve-commit", "7")
		if err != nil || strings.Count(out, "\n") != 1 || !strings.Contains(out, "shelved changelist 7 is spooled") {
			t.Errorf("starter said %q, %v", out, err)
		}
	}
	if out, err := in.run(nil, "starter", "drain"); err != nil || !strings.Contains(out, "started 1 spooled reviews\n") {
		t.Errorf("drain said %q, %v", out, err)
	}
	in.waitForJobs(1)
}
