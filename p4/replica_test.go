package p4

import (
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// is makes the server report its services.
func (f *fake) is(services string) {
	f.reply("info -s", stat("serverVersion", "P4D/FAKE/2023.2/1", "caseHandling", "sensitive", "serverServices", services))
}

// A shelf that a replica does not have, or has in an older version than the trigger
// saw, is waited for. In the last attempt it is taken as it is.
func TestShelfOnReplica(t *testing.T) {
	t.Parallel()
	added := rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"}
	shelved := time.Unix(932758432, 0) // as in describes
	for name, tt := range map[string]struct {
		services string
		revs     []rev
		at       time.Time
		last     bool
		class    failure.Class
		skipped  review.SkipRule
		gaps     int
	}{
		"no shelf yet":                     {services: "replica", class: failure.ReplicaBehind},
		"no shelf, the server unknown":     {class: failure.ReplicaBehind},
		"no shelf on the commit server":    {services: "commit-server", skipped: review.SkipRuleGone},
		"no shelf in the last attempt":     {services: "edge-server", last: true, skipped: review.SkipRuleGone},
		"an older shelf":                   {services: "replica", revs: []rev{added}, at: shelved.Add(time.Hour), class: failure.ReplicaBehind},
		"an older shelf, the last attempt": {services: "replica", revs: []rev{added}, at: shelved.Add(time.Hour), last: true, gaps: 1},
		"an older shelf on the server":     {services: "standard", revs: []rev{added}, at: shelved.Add(time.Hour)},
		"the shelf":                        {services: "replica", revs: []rev{added}, at: shelved.Add(time.Minute)},
		"the shelf of an unknown time":     {services: "replica", revs: []rev{added}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.is(tt.services)
			f.shelves(12, tt.revs...)
			fetcher := f.fetcher()
			change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{Shelved: true, ShelvedAt: tt.at, LastAttempt: tt.last})
			if (err != nil) != (tt.class != "") || err != nil && failure.ClassOf(err) != tt.class {
				t.Fatalf("error = %v, want class %q", err, tt.class)
			}
			if change.SkippedBy != tt.skipped || len(change.Gaps) != tt.gaps {
				t.Errorf("skipped by %q, gaps %q", change.SkippedBy, change.Gaps)
			}
		})
	}
}

// A replica may list only the users who have used it.
func TestUsersOfReplica(t *testing.T) {
	t.Parallel()
	for services, want := range map[string]int{"edge-server": 1, "commit-server": 0} {
		f := newFake(t)
		f.is(services)
		f.submitted(12, rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"})
		f.reply("users ann", message(2, 17, "ann - no such user(s).\n"))
		f.reply("users -c ann", stat("User", "ann", "Email", "ann@example.com"))
		if change, err := f.fetch(12); err != nil || len(change.Recipients) != want || len(change.Unresolved) != 1-want {
			t.Errorf("%s: %+v, %v; want %d recipients", services, change, err, want)
		}
	}
}

// A replica may get an archive later. What it lacks in the last attempt is skipped.
func TestArchiveMissingOnReplica(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		services, text string
		last           bool
		class          failure.Class
		skipped        review.SkipReason
	}{
		{"replica", "Transfer of librarian file 'depot/f' failed.", false, failure.ReplicaBehind, ""},
		{"replica", "Transfer of librarian file 'depot/f' failed.", true, "", review.SkipUnreadable},
		{"replica", "Librarian checkout depot/f failed.", false, failure.ReplicaBehind, ""},
		{"replica", "Librarian checkout depot/f failed.", true, "", review.SkipDamaged},
		{"standard", "Librarian checkout depot/f failed.", false, "", review.SkipDamaged},
	} {
		f := newFake(t)
		f.is(tt.services)
		f.submitted(12, rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"}, rev{path: "//depot/g", rev: 1, action: "add", data: "g\n"})
		f.reply("print //depot/f#1", message(3, 33, tt.text+"\n"))
		change, err := f.fetcher().Read(t.Context(), 12, review.ReadOptions{LastAttempt: tt.last})
		switch {
		case (err != nil) != (tt.class != "") || err != nil && failure.ClassOf(err) != tt.class:
			t.Errorf("%+v: error %v", tt, err)
		case err == nil && (change.Files[0].Skipped != tt.skipped || change.Files[1].Skipped != ""):
			t.Errorf("%+v: files %+v", tt, change.Files)
		}
	}
}

// What beside the contents could not be read is tried again if it may be there then, and is a
// gap in the last attempt. An expired ticket is never a gap.
func TestGapsThatAreTriedAgain(t *testing.T) {
	t.Parallel()
	busy := message(3, 39, "Too many commands paused;  terminated.\n")
	for _, tt := range []struct {
		command string
		out     []byte
		last    bool
		class   failure.Class
		gap     review.Gap
	}{
		{"reviews -c 12", busy, false, failure.ServerBusy, ""},
		{"reviews -c 12", busy, true, "", review.GapSubscribers},
		{"jobs -l -e Job=job000001", busy, false, failure.ServerBusy, ""},
		{"jobs -l -e Job=job000001", message(3, 4, "Your session has expired, please login again.\n"), true, failure.AuthDenied, ""},
	} {
		f := newFake(t)
		f.describesJobs("job000001")
		f.reply("jobs -l -e Job=job000001", stat("Job", "job000001", "Description", "x"))
		f.reply(tt.command, tt.out)
		change, err := f.fetcher().Read(t.Context(), 12, review.ReadOptions{LastAttempt: tt.last})
		switch {
		case (err != nil) != (tt.class != "") || err != nil && failure.ClassOf(err) != tt.class:
			t.Errorf("%s: error %v, want class %q", tt.command, err, tt.class)
		case err == nil && (len(change.Gaps) != 1 || change.Gaps[0] != tt.gap || change.Files[0].Diff == "" || len(change.Jobs) != 1):
			t.Errorf("%s: change %+v", tt.command, change)
		}
	}
}
