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
func (d shelfDepot) write(tb testing.TB, changes ...string) {
	tb.Helper()
	const first = "-- user alice alice@corp.test Alice --\n-- change 1 user=alice --\nBegin.\n-- add text //depot/a.go --\npackage a\n"
	next := d.path + ".next" // p4sim may be reading
	writeFile(tb, next, 0o600, first+strings.Join(changes, ""))
	if err := os.Rename(next, d.path); err != nil {
		tb.Fatal(err)
	}
}

// shelved returns a pending changelist with body shelved.
func shelved(number int, body string) string {
	return fmt.Sprintf("-- change %d user=alice pending --\nMend it.\n-- edit text shelved //depot/a.go --\n%s", number, body)
}

// submitted returns a submitted changelist that had another number, old, before.
func submitted(number int, old, body string) string {
	return fmt.Sprintf("-- change %d user=alice %s --\nMend it.\n-- edit text //depot/a.go --\n%s", number, old, body)
}

// shelve starts the review of a shelved changelist.
func (in *installation) shelve(number int) (started startResult) {
	in.t.Helper()
	in.decode(in.execute(nil, "starter", "shelve-commit", "--json", "--timeout=1m", fmt.Sprint(number)), &started)
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

// Shelved changelists are reviewed once they have not changed for a while, and each submit
// takes over what its shelf has. The texts of the steps differ, since answers are kept.
func TestShelves(t *testing.T) {
	t.Parallel()
	depot := shelfDepot{t.TempDir() + "/depot.txtar"}
	depot.write(t)
	in := newInstallation(t, depot.path)
	in.env = append(in.env, "CRITICIZER_SHELF_QUIET=2s")
	in.startWorker()
	in.submitUnchangedShelf(depot)
	in.submitChangedShelf(depot)
	in.shelveDuringReview(depot)
	in.deleteShelf(depot)
	if n := in.countRows("dead_letters", "true"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}

const draft = "package a\n\nvar draft int\n"

// A changelist that is shelved twice in a row is reviewed once, with its last content.
// Submitted unchanged, it takes over that review without a model call, and its mail
// replies to the shelf's mail.
func (in *installation) submitUnchangedShelf(depot shelfDepot) {
	in.t.Helper()
	depot.write(in.t, shelved(7, draft))
	in.shelve(7)
	depot.write(in.t, shelved(7, faulty))
	if a := in.shelve(7); a.WorkflowID != "shelf-p4-7" {
		in.t.Errorf("the shelf's workflow is %q", a.WorkflowID)
	}
	in.waitForJobs(1)
	shelf := in.mails(7)
	if len(shelf) != 1 || !strings.HasPrefix(shelf[0].Subject, "[criticizer] shelved CL 7:") || in.countRows("jobs", "shelved and outcome = 'findings' and review_version = 1") != 1 {
		in.t.Fatalf("the shelf was mailed as %+v; status:\n%s", shelf, in.criticizer("status", "7"))
	}
	before := in.calls(7).model
	depot.write(in.t, submitted(9, "old=7", faulty))
	if a := in.mustStart("--wait", "9"); a.Outcome != review.OutcomeFindings || a.Findings == 0 {
		in.t.Errorf("the submit ended as %+v", a)
	}
	submit := in.mails(9)
	if n := in.calls(9).model; n != before || len(submit) != 1 {
		in.t.Fatalf("the submit cost %d model calls and %d mails", n-before, len(submit))
	}
	if got, want := in.header(submit[0], "In-Reply-To"), in.header(shelf[0], "References"); got == "" || got != want {
		in.t.Errorf("the submit replies to %q, want the root of the shelf's thread %q", got, want)
	}
}

// While Temporal is down, starter spools a shelf once, as it does a submit. A submit that
// differs from the shelf and keeps its number is reviewed and mailed.
func (in *installation) submitChangedShelf(depot shelfDepot) {
	in.t.Helper()
	depot.write(in.t, shelved(17, draft+"// 17\n"))
	for range 2 {
		r := in.execute([]string{"CRITICIZER_TEMPORAL_ADDRESS=127.0.0.1:1"}, "starter", "--trigger", "shelve-commit", "17")
		if r.status != exitOK || strings.Count(r.stdout+r.stderr, "\n") != 1 {
			in.t.Errorf("starter: %+v, want one line", r)
		}
	}
	in.output("starter", "drain")
	in.waitForJobs(3)
	before := in.calls(17).model
	depot.write(in.t, submitted(17, "", faulty+"// 17\n"))
	a := in.mustStart("--wait", "17")
	if a.Outcome != review.OutcomeFindings || in.calls(17).model == before || in.countRows("jobs", "changelist_id = 17 and not shelved and review_version = 2") != 1 {
		in.t.Errorf("the submit ended as %+v; status:\n%s", a, in.criticizer("status", "17"))
	}
	if again := in.mustStart("--wait", "17"); !again.Duplicate || len(in.mails(17)) != 2 {
		in.t.Errorf("a second start is %+v, with %d mails, want two", again, len(in.mails(17)))
	}
}

// A changelist that is shelved again during its review ends that review at once, without
// a mail and with a recorded reason. The new content is reviewed.
func (in *installation) shelveDuringReview(depot shelfDepot) {
	in.t.Helper()
	answer := make(chan struct{})
	release := sync.OnceFunc(func() { close(answer) })
	in.t.Cleanup(release)
	var called atomic.Int64
	wait := func() {
		called.Add(1)
		<-answer
	}
	in.beforeAnswer.Store(&wait)
	depot.write(in.t, shelved(27, draft+"// 27\n"))
	in.shelve(27)
	waitFor(in.t, "the first model call", func() bool { return called.Load() == 1 })
	depot.write(in.t, shelved(27, faulty+"// 27\n"))
	in.shelve(27)
	waitFor(in.t, "the end of the first", func() bool {
		return in.countRows("jobs", "changelist_id = 27 and review_version = 1 and state = 'succeeded' and skipped_by like '%shelved again%'") == 1
	})
	if c := in.calls(27); c.mails != 0 || in.countRows("deliveries", "changelist_id = 27") != 0 {
		in.t.Errorf("the replaced shelf cost %+v", c)
	}
	release()
	in.waitForJobs(6)
	if len(in.mails(27)) != 1 || in.countRows("jobs", "changelist_id = 27 and review_version = 2 and outcome = 'findings'") != 1 {
		in.t.Errorf("%d mails; status:\n%s", len(in.mails(27)), in.criticizer("status", "27"))
	}
}

// A shelf that is deleted before it settles costs no model call and no mail.
func (in *installation) deleteShelf(depot shelfDepot) {
	in.t.Helper()
	before := in.calls(37).model
	depot.write(in.t, "-- change 37 user=alice pending --\nMend it.\n")
	in.shelve(37)
	in.waitForJobs(7)
	if c := in.calls(37); c.model != before || c.mails != 0 || in.countRows("jobs", "changelist_id = 37 and skipped_by is not null") != 1 {
		in.t.Errorf("a shelf without files cost %+v", c)
	}
}
