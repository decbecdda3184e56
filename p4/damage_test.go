package p4

import (
	"bytes"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/review"
)

// header is the record before the content of a revision.
func header(r rev) []byte {
	return stat("depotFile", r.path, "rev", fmt.Sprint(r.rev), "action", "edit", "type", "text", "fileSize", fmt.Sprint(len(r.data)))
}

func whole(r rev) []byte { return slices.Concat(header(r), chunk(r.data), chunk("")) }

// One damaged revision costs its own file, not the change. The log
// tells the administrator which one.
func TestDamagedRevision(t *testing.T) {
	t.Parallel()
	a1, a2 := rev{path: "//depot/a.c", rev: 1, data: "one\n"}, rev{path: "//depot/a.c", rev: 2, data: "two\n"}
	b1, b2 := rev{path: "//depot/b.c", rev: 1, data: "bee\n"}, rev{path: "//depot/b.c", rev: 2, data: "bee!\n"}
	checkout := message(3, 33, "Operation 'user-print' failed.\nLibrarian checkout depot/a.c failed.\nopen for read: /p4/depot/a.c,v: No such file or directory\n")
	const all = "print //depot/a.c#2 //depot/a.c#1 //depot/b.c#2 //depot/b.c#1"
	for name, script := range map[string]func(f *fake){
		"the server goes on": func(f *fake) {
			f.replies["print //depot/a.c#1"] = reply{Out: slices.Concat(header(a1), checkout), Exit: 1}
		},
		"in the middle of the content": func(f *fake) {
			f.replies["print //depot/a.c#1"] = reply{Out: slices.Concat(header(a1), chunk("on"), message(3, 33, "Error opening librarian file depot/a.c revision 1.1.\n")), Exit: 1}
		},
		"without the record before it": func(f *fake) {
			f.replies["print //depot/a.c#1"] = reply{Out: message(4, 33, "RCS checkout depot/a.c#1.1 failed!\n"), Exit: 1}
		},
		"the server ends there": func(f *fake) {
			f.replies[all] = reply{Out: slices.Concat(whole(a2), header(a1), checkout), Exit: 1}
		},
		"the server ends there without the record before it": func(f *fake) {
			f.replies[all] = reply{Out: slices.Concat(whole(a2), checkout), Exit: 1}
		},
		"a digest that differs": func(f *fake) {
			bad := a2
			bad.digest = strings.Repeat("0", 32)
			f.submitted(12, bad, b2)
		},
		"a base that is shorter than its size": func(f *fake) { f.reply("print //depot/a.c#1", header(a1), chunk("on"), chunk("")) },
		"a base of size 0 with content": func(f *fake) {
			f.reply("print //depot/a.c#1", stat("depotFile", a1.path, "rev", "1", "action", "add", "type", "text", "fileSize", "0"), chunk(a1.data), chunk(""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, a2, b2)
			f.has(a1, b1)
			script(f)
			var log bytes.Buffer
			change, err := f.fetcher(slog.New(slog.NewJSONHandler(&log, nil)), nil).Read(t.Context(), 12, review.ReadOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if change.Files[0].Skipped != review.SkipDamaged || change.Files[1].Diff != "@@ -1,1 +1,1 @@\n-bee\n+bee!\n" {
				t.Errorf("files = %+v", change.Files)
			}
			reports := logged(t, &log, "file is damaged on the Perforce server")
			if len(reports) != 1 || reports[0]["confirm"] != "p4 verify "+reports[0]["revision"].(string) {
				t.Errorf("%v is reported, want one revision with p4 verify", reports)
			}
		})
	}
}

// Revisions that do not arrive after a damaged one either are skipped.
func TestRevisionsLeftOutAfterDamage(t *testing.T) {
	t.Parallel()
	a, b, c := rev{path: "//depot/a", rev: 1, action: "add", data: "a\n"}, rev{path: "//depot/b", rev: 1, action: "add", data: "b\n"}, rev{path: "//depot/c", rev: 1, action: "add", data: "c\n"}
	f := newFake(t)
	f.submitted(12, a, b, c)
	f.replies["print //depot/a#1 //depot/b#1 //depot/c#1"] = reply{Out: slices.Concat(header(a), message(3, 33, "Librarian checkout depot/a failed.\n")), Exit: 1}
	f.replies["print //depot/b#1 //depot/c#1"] = reply{Out: whole(c)}
	change, err := f.fetch(12)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []review.SkipReason{review.SkipDamaged, review.SkipUnreadable, ""} {
		if got := change.Files[i].Skipped; got != want {
			t.Errorf("%s is skipped as %q, want %q", change.Files[i].DepotPath, got, want)
		}
	}
}

// Content that differs is read again: it may have been damaged on the way.
func TestContentDamagedOnTheWay(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	file := rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"}
	f.submitted(12, file)
	f.replies["print //depot/f#1"] = reply{First: slices.Concat(header(file), chunk("ne"), chunk("")), Out: whole(file)}
	if change, err := f.fetch(12); err != nil || change.Files[0].Skipped != "" {
		t.Errorf("change = %+v, %v", change, err)
	}
}

// A server that can read no archive has lost its depots: the review is tried again,
// and only the last attempt skips the files.
func TestAllRevisionsDamaged(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var revs []rev
	for i := range manyDamaged {
		revs = append(revs, rev{path: fmt.Sprintf("//depot/%d", i), rev: 1, action: "add", data: "x\n"})
	}
	f.submitted(12, revs...)
	for _, r := range revs {
		f.reply("print "+r.spec(), message(3, 33, "Librarian checkout "+r.path[2:]+" failed.\n"))
	}
	fetcher := f.fetcher(slog.New(slog.DiscardHandler), nil)
	if _, err := fetcher.Read(t.Context(), 12, review.ReadOptions{}); failure.ClassOf(err) != failure.UpstreamInternal {
		t.Errorf("error = %v, want UpstreamInternal", err)
	}
	change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{LastAttempt: true})
	if err != nil || slices.ContainsFunc(change.Files, func(f review.File) bool { return f.Skipped != review.SkipDamaged }) {
		t.Errorf("the last attempt: %+v, %v", change.Files, err)
	}
}

// One per cent of 400 files, spread over a print that ends at each.
func TestManyDamagedRevisions(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var revs []rev
	for i := range 400 {
		revs = append(revs, rev{path: fmt.Sprintf("//depot/%03d", i), rev: 1, action: "add", data: "x\n"})
	}
	f.submitted(12, revs...)
	for i, r := range revs {
		if i%100 == 50 {
			f.replies["print "+r.spec()] = reply{Out: message(3, 33, "Librarian checkout x failed.\n"), Ends: true, Exit: 1}
		}
	}
	change, err := f.fetch(12)
	if err != nil {
		t.Fatal(err)
	}
	for i, file := range change.Files {
		if want := i%100 == 50; (file.Skipped == review.SkipDamaged) != want || (file.Diff == "") != want {
			t.Errorf("%s: skipped %q, diff %q", file.DepotPath, file.Skipped, file.Diff)
		}
	}
	prints := 0
	for _, c := range f.calls() {
		if slices.Contains(c.Args, "print") {
			prints++
		}
	}
	if prints != 5 {
		t.Errorf("%d prints, want one more than damaged revisions", prints)
	}
}
