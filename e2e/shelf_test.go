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

// A shelfDepot is a depot with one file that alice edits.
type shelfDepot struct{ path string }

// write replaces all changes but the first.
func (d shelfDepot) write(t *testing.T, changes ...string) {
	t.Helper()
	const first = "-- user alice alice@corp.test Alice --\n-- change 1 user=alice --\nBegin.\n-- add text //depot/a.go --\npackage a\n"
	next := d.path + ".next" // p4sim may be reading
	writeFile(t, next, 0o600, first+strings.Join(changes, ""))
	if err := os.Rename(next, d.path); err != nil {
		t.Fatal(err)
	}
}

// shelved returns the pending changelist 7 with body shelved.
func shelved(body string) string {
	return "-- change 7 user=alice pending --\nMend it.\n-- edit text shelved //depot/a.go --\n" + body
}

// submittedAs returns changelist 7 submitted under a new number.
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

// shelve starts the review of shelved changelist 7.
func (in *installation) shelve() (started startResult) {
	in.t.Helper()
	in.decode(in.execute(nil, "starter", "shelve-commit", "--json", "--timeout=1m", "7"), &started)
	return started
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

// A changelist that is shelved twice in a row is reviewed once, with its last content.
// Submitted unchanged, it takes over that review without a model call, and its mail
// replies to the shelf's mail.
func TestSubmitOfUnchangedShelf(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, shelved("package a\n\nvar draft int\n"))
	in.shelve()
	depot.write(t, shelved(faulty))
	if a := in.shelve(); a.WorkflowID != "shelf-p4-7" {
		t.Errorf("the shelf's workflow is %q", a.WorkflowID)
	}
	in.waitForJobs(1)
	shelf := in.mails(7)
	if len(shelf) != 1 || !strings.HasPrefix(shelf[0].Subject, "[criticizer] shelved CL 7:") || in.countRows("jobs", "shelved and outcome = 'findings' and review_version = 1") != 1 {
		t.Fatalf("the shelf was mailed as %+v; status:\n%s", shelf, in.criticizer("status", "7"))
	}
	before := in.calls(7).model
	depot.write(t, submittedAs(9, faulty))
	if a := in.mustStart("--wait", "9"); a.Outcome != review.OutcomeFindings || a.Findings == 0 {
		t.Errorf("the submit ended as %+v", a)
	}
	submit := in.mails(9)
	if n := in.calls(9).model; n != before || len(submit) != 1 {
		t.Fatalf("the submit cost %d model calls and %d mails", n-before, len(submit))
	}
	if got, want := in.header(submit[0], "In-Reply-To"), in.header(shelf[0], "References"); got == "" || got != want {
		t.Errorf("the submit replies to %q, want the root of the shelf's thread %q", got, want)
	}
}

// A submit that differs from the shelf is reviewed and mailed.
func TestSubmitOfChangedShelf(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, shelved("package a\n\nvar draft int\n"))
	in.shelve()
	in.waitForJobs(1)
	before := in.calls(7).model
	depot.write(t, strings.Replace(submittedAs(7, faulty), " old=7", "", 1)) // keeps its number
	a := in.mustStart("--wait", "7")
	if a.Outcome != review.OutcomeFindings || in.calls(7).model == before || in.countRows("jobs", "not shelved and review_version = 2") != 1 {
		t.Errorf("the submit ended as %+v; status:\n%s", a, in.criticizer("status", "7"))
	}
	if mails := in.mails(7); len(mails) != 2 {
		t.Errorf("%d mails", len(mails))
	}
	if again := in.mustStart("--wait", "7"); !again.Duplicate || len(in.mails(7)) != 2 {
		t.Errorf("a second start is %+v", again)
	}
}

// A changelist that is shelved again during its review ends that review at once, without
// a mail and with a recorded reason. The new content is reviewed.
func TestReplacedShelf(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	t.Cleanup(release)
	var called atomic.Int64
	wait := func() {
		called.Add(1)
		<-answer
	}
	in.beforeAnswer.Store(&wait)
	depot.write(t, shelved("package a\n\nvar draft int\n"))
	in.shelve()
	waitFor(t, "the first model call", func() bool { return called.Load() == 1 })
	depot.write(t, shelved(faulty))
	in.shelve()
	waitFor(t, "the end of the first", func() bool {
		return in.countRows("jobs", "review_version = 1 and state = 'succeeded' and skipped_by like '%shelved again%'") == 1
	})
	if c := in.calls(7); c.mails != 0 || in.countRows("deliveries", "true") != 0 {
		t.Errorf("the replaced shelf cost %+v", c)
	}
	release()
	in.waitForJobs(2)
	if len(in.mails(7)) != 1 || in.countRows("dead_letters", "true") != 0 || in.countRows("jobs", "review_version = 2 and outcome = 'findings'") != 1 {
		t.Errorf("%d mails; status:\n%s", len(in.mails(7)), in.criticizer("status", "7"))
	}
}

// A shelf that is deleted before it settles costs no model call and no mail.
func TestDeletedShelf(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, "-- change 7 user=alice pending --\nMend it.\n")
	in.shelve()
	in.waitForJobs(1)
	if c := in.calls(7); c.model+c.mails != 0 || in.countRows("jobs", "skipped_by is not null") != 1 {
		t.Errorf("a shelf without files cost %+v", c)
	}
}

// While Temporal is down, starter spools a shelf once, as it does a submit.
func TestShelfIsSpooledWhileTemporalIsDown(t *testing.T) {
	t.Parallel()
	in, depot := newShelfInstallation(t)
	depot.write(t, shelved(faulty))
	for range 2 {
		r := in.execute([]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}, "starter", "--trigger", "shelve-commit", "7")
		if r.status != exitOK || strings.Count(r.stdout+r.stderr, "\n") != 1 {
			t.Errorf("starter: %+v, want one line", r)
		}
	}
	in.output("starter", "drain")
	in.waitForJobs(1)
	if n := in.countRows("jobs", "true"); n != 1 {
		t.Errorf("%d reviews of one shelf", n)
	}
}
