package p4

import (
	"bytes"
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// A change with a denied path is not fetched in part, and a security event is
// logged with the path and the reason (security 9.1.4).
func TestDeniedPathFailsTheWholeChangeClosed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ path, caseHandling string }{
		"outside the list":             {"//depot/projAB/x", "sensitive"},
		"embargoed in another case":    {"//depot/projA/SECRET/x", "insensitive"},
		"embargoed on a hybrid server": {"//depot/projA/Secret/x", "hybrid"},
		"not canonical":                {"//depot/projA/../projB/x", "sensitive"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.reply("info -s", stat("caseHandling", c.caseHandling))
			f.submitted(12, rev{path: "//depot/projA/ok", rev: 1, action: "add", data: "new\n"},
				rev{path: c.path, rev: 1, action: "add", data: "hidden\n"},
				rev{path: "//depot/projA/gone", rev: 2, action: "delete"})
			fetcher := f.fetcher(func(cfg *Config) {
				cfg.Allowed, cfg.Embargoed = []string{"//depot/projA/..."}, []string{"//depot/projA/secret/..."}
			})
			change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
			testkit.NoError(t, err)
			for _, file := range change.Files {
				if file.Skipped != review.SkipNotAllowed || file.Diff != "" {
					t.Errorf("%s: skipped = %q, diff = %q; want it skipped", file.DepotPath, file.Skipped, file.Diff)
				}
			}
			if len(change.Files) != 3 || change.Description != "" {
				t.Errorf("change = %+v, want 3 files and no description", change)
			}
			want := []review.Recipient{{User: "ann", Address: "ann@example.com", Role: review.RoleAuthor}}
			if !slices.Equal(change.Recipients, want) {
				t.Errorf("recipients = %v, want the author only", change.Recipients)
			}
			if ran := append(f.ran("print"), f.ran("reviews")...); len(ran) > 0 {
				t.Errorf("p4 ran for a denied change: %v", ran)
			}
			assertDenied(t, f, 1, c.path)
		})
	}
}

// Each reason for which paths of a change are denied has its own event (security 9.1.4).
func TestEveryReasonOfADenialIsLogged(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var revs []rev
	for _, path := range []string{"//depot/b/1", "//depot/a/secret/1", "//depot/a/ok", "//depot/b/2"} {
		revs = append(revs, rev{path: path, rev: 1, action: "delete"})
	}
	f.submitted(12, revs...)
	fetcher := f.fetcher(func(cfg *Config) {
		cfg.Allowed, cfg.Embargoed = []string{"//depot/a/..."}, []string{"//depot/a/secret/..."}
	})
	if _, err := fetcher.Read(t.Context(), 12, review.ReadOptions{}); err != nil {
		t.Fatal(err)
	}
	var got [][3]any
	for _, e := range f.logged("security event") {
		got = append(got, [3]any{e["reason"], e["denied_paths"], e["denied_path"]})
	}
	want := [][3]any{{errNotListed.Error(), 2.0, "//depot/b/1, //depot/b/2"}, {errEmbargoed.Error(), 1.0, "//depot/a/secret/1"}}
	if !slices.Equal(got, want) {
		t.Errorf("events are %v, want %v", got, want)
	}
}

// A source outside the list is not passed to p4, although the server reported it
// (security 9.1.3).
func TestDeniedSourceIsNotRead(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/projA/moved", rev: 1, action: "move/add", data: "new\n", from: "//depot/other/was#3"},
		rev{path: "//depot/projA/copied", rev: 1, action: "branch", data: "new\n"})
	f.reply("filelog -m 1 //depot/projA/copied#1", stat("depotFile", "//depot/projA/copied", "how0,0", "branch from", "file0,0", "//depot/other/f", "erev0,0", "#1"))
	f.has(rev{path: "//depot/other/was", rev: 3, data: "hidden\n"}, rev{path: "//depot/other/f", rev: 1, data: "hidden\n"})
	fetcher := f.fetcher(func(cfg *Config) { cfg.Allowed = []string{"//depot/projA/..."} })
	change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
	testkit.NoError(t, err)
	for _, file := range change.Files {
		if file.Diff != "@@ -0,0 +1,1 @@\n+new\n" || file.FromPath != "" || file.FromRevision != 0 {
			t.Errorf("file = %+v, want it all new and no source", file)
		}
	}
	for _, call := range f.calls() {
		if strings.Contains(strings.Join(call.Lines, " "), "other") {
			t.Errorf("p4 was given %q", call.Lines)
		}
	}
	assertDenied(t, f, 2, "//depot/other/was")
}

// assertDenied checks that one security event was logged.
func assertDenied(t *testing.T, f *fake, count float64, path string) {
	t.Helper()
	events := f.logged("security event")
	if len(events) != 1 {
		t.Fatalf("%d security events, want 1", len(events))
	}
	e := events[0]
	if e["level"] != "WARN" || e["event"] != "depot path denied" || e["changelist"] != 12.0 || e["denied_paths"] != count || !strings.HasPrefix(e["denied_path"].(string), path) || e["reason"] == "" {
		t.Errorf("security event %v, want %v denied paths with %s first", e, count, path)
	}
}

const guardedDepot = `
-- change 1 user=ann --
A file that is outside of the allow list.
-- add text //depot/hidden/f.c --
hidden
-- change 2 user=ann --
A copy of it, and an edit.
-- branch text //depot/hidden/g.c <- //depot/hidden/f.c --
hidden
-- edit text //depot/hidden/f.c --
hidden, edited
`

// If the first check had a bug, each read of the adapter would end with PathNotAllowed
// before it passes a path to p4 (security 9.1.3): the test calls the reads without it. The
// same change is read if the list allows it.
func TestEveryReadIsGuarded(t *testing.T) {
	t.Parallel()
	reads := map[string]func(context.Context, *fetch) error{
		"the contents": func(ctx context.Context, x *fetch) error {
			x.files = slices.DeleteFunc(x.files, func(f *file) bool { return f.Action != review.ActionEdit })
			return x.readContents(ctx)
		},
		"the sources of a copy": func(ctx context.Context, x *fetch) error {
			for _, f := range x.files {
				f.source = source{}
			}
			return x.findSources(ctx, x.files)
		},
		"the reviews of a source": func(ctx context.Context, x *fetch) error {
			x.files[0].merged = []source{{"//depot/hidden/f.c", 1, 0}}
			return x.creditSources(ctx, x.files)
		},
		"the code around the change": func(ctx context.Context, x *fetch) error {
			_, err := x.printSiblings(ctx, []string{"//depot/hidden/f.c"}, map[string]string{"//depot/hidden/f.c": "//depot/hidden/f.c#1"})
			return err
		},
		"the rules": func(ctx context.Context, x *fetch) error {
			x.cfg.Rules = []string{"//depot/hidden/f.c"}
			_, err := x.readRules(ctx)
			return err
		},
	}
	dir := t.TempDir()
	depot := filepath.Join(dir, "depot.txtar")
	testkit.NoError(t, os.WriteFile(depot, []byte(guardedDepot), 0o600))
	for name, read := range reads {
		for allowed, want := range map[string]failure.Class{"//depot/projA/...": failure.PathNotAllowed, "//depot/...": ""} {
			t.Run(name+" with "+allowed, func(t *testing.T) {
				t.Parallel()
				log := filepath.Join(t.TempDir(), "log")
				f := simFetcher(t, depot, "P4SIM_LOG="+log)
				list, err := NewAllowList([]string{allowed}, nil)
				testkit.NoError(t, err)
				s, err := f.connect(t.Context())
				testkit.NoError(t, err)
				d, err := s.describe(t.Context(), 2, review.ReadOptions{})
				if err != nil || len(d.files) != 2 {
					t.Fatalf("%d files, %v", len(d.files), err)
				}
				commands := func() int {
					body, err := os.ReadFile(log)
					testkit.NoError(t, err)
					return bytes.Count(body, []byte("\n"))
				}
				before := commands()
				f.list = list
				err = read(t.Context(), &fetch{f, s, d, review.ReadOptions{}})
				if err == nil && want != "" || err != nil && failure.ClassOf(err) != want {
					t.Errorf("error = %v, want class %q", err, want)
				}
				if ran := commands() - before; (ran == 0) != (want != "") {
					t.Errorf("%d commands were run", ran)
				}
			})
		}
	}
}

// With ReviewAllowedOnly the denied files of a mixed change are listed, and their
// paths are never passed to p4 (security 9.1.3).
func TestReviewAllowedOnlyLeavesOutTheDenied(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		others  []string
		skipped []review.SkipReason
		desc    string
	}{
		"one of two is denied": {[]string{"//depot/projA/ok"}, []review.SkipReason{review.SkipNotAllowed, ""}, "What I did\n"},
		"all are denied":       {[]string{"//depot/projB/x"}, []review.SkipReason{review.SkipNotAllowed, review.SkipNotAllowed}, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			revs := []rev{{path: "//depot/projA/secret/x", rev: 1, action: "add", data: "hidden\n"}}
			for _, path := range c.others {
				revs = append(revs, rev{path: path, rev: 1, action: "add", data: "new\n"})
			}
			f.submitted(12, revs...)
			fetcher := f.fetcher(func(cfg *Config) {
				cfg.Allowed, cfg.Embargoed = []string{"//depot/projA/..."}, []string{"//depot/projA/secret/..."}
				cfg.MixedChanges = ReviewAllowedOnly
			})
			change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
			testkit.NoError(t, err)
			for i, file := range change.Files {
				if file.Skipped != c.skipped[i] || (file.Diff == "") != (file.Skipped != "") {
					t.Errorf("%s: skipped = %q, diff = %q; want skipped %q", file.DepotPath, file.Skipped, file.Diff, c.skipped[i])
				}
			}
			if (change.Description == "") != (c.desc == "") {
				t.Errorf("description = %q", change.Description)
			}
			for _, call := range f.calls() {
				if strings.Contains(strings.Join(append(call.Args, call.Lines...), " "), "secret") {
					t.Errorf("p4 was given %q %q", call.Args, call.Lines)
				}
			}
		})
	}
}

// protectionLine encodes a line of p4 protects.
func protectionLine(perm, host, path string) []byte {
	fields := []string{"perm", perm, "host", host, "user", "reader", "line", "1", "depotFile", strings.TrimPrefix(path, "-")}
	if path[0] == '-' {
		fields = append(fields, "unmap", "")
	}
	return stat(fields...)
}

// The list of files is complete only if the account may list all files, which p4
// describe does not tell. Otherwise the description may be about hidden files.
func TestChangeWithHiddenFilesIsDenied(t *testing.T) {
	t.Parallel()
	all := [][]byte{protectionLine("list", "*", "//...")}
	for name, tt := range map[string]struct {
		path       string
		protects   [][]byte
		policy     MixedChanges
		unreadable bool // the change has only files that may not be listed
		denied     bool
		gap        bool // the review says that files may be hidden
	}{
		"all files may be listed":                    {protects: all},
		"the common path of the visible file":        {protects: all, path: "//depot/pub/*"},
		"a file in another directory":                {protects: all, path: "//depot/...", denied: true},
		"a file in another depot":                    {protects: all, path: "//...", denied: true},
		"a file below":                               {protects: all, path: "//depot/pub/...", denied: true},
		"the server may write the path in two cases": {protects: all, path: "//depot/PUB/*"},
		"an exclusion before":                        {protects: [][]byte{protectionLine("list", "*", "-//depot/zeus/..."), all[0]}},
		"an exclusion after":                         {protects: [][]byte{all[0], protectionLine("list", "*", "-//depot/zeus/...")}, denied: true},
		"an exclusion of every right":                {protects: [][]byte{all[0], protectionLine("write", "*", "-//depot/zeus/...")}, denied: true},
		"an exclusion for one host":                  {protects: [][]byte{all[0], protectionLine("list", "10.0.0.1", "-//depot/zeus/...")}, denied: true},
		"an exclusion of reading":                    {protects: [][]byte{all[0], protectionLine("=read", "*", "-//depot/zeus/...")}},
		"a higher permission":                        {protects: [][]byte{protectionLine("write", "*", "//...")}},
		"a right is not a permission":                {protects: [][]byte{protectionLine("=read", "*", "//...")}, denied: true},
		"editing protections is not listing":         {protects: [][]byte{protectionLine("owner", "*", "//...")}, denied: true},
		"one tree":                                   {protects: [][]byte{protectionLine("read", "*", "//depot/...")}, denied: true},
		"from one host only":                         {protects: [][]byte{protectionLine("list", "10.0.0.1", "//...")}, denied: true},
		"no protections for the account":             {protects: nil, denied: true},
		"no protections table":                       {protects: [][]byte{message(3, 35, "Protections table is empty.\n")}},
		"the server refuses":                         {protects: [][]byte{message(3, 6, "You don't have permission for this operation.\n")}, denied: true},
		"allowed files are reviewed":                 {protects: nil, policy: ReviewAllowedOnly, gap: true},
		"no gap if all files may be listed":          {protects: all, policy: ReviewAllowedOnly},
		"no visible files":                           {protects: all, unreadable: true, denied: true},
		"no visible files under the other policy":    {protects: all, unreadable: true, policy: ReviewAllowedOnly, denied: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.reply("info -s", stat("caseHandling", "insensitive"))
			f.reply("protects", tt.protects...)
			var revs []rev
			if !tt.unreadable {
				revs = []rev{{path: "//depot/pub/a.c", rev: 1, action: "add", data: "x\n"}}
			}
			f.submitted(12, revs...)
			f.describes(12, []string{"desc", "Zeus: the new key layout\n", "path", tt.path}, revs...)
			f.reply("reviews -c 12", stat("user", "bob", "email", "bob@example.com"))
			change, err := f.fetch(12, func(c *Config) {
				c.Allowed, c.MixedChanges = []string{"//depot/pub/..."}, cmp.Or(tt.policy, c.MixedChanges)
			})
			testkit.NoError(t, err)
			if change.Denied() != tt.denied || (change.Description == "") != tt.denied || (len(change.Recipients) == 1) != tt.denied {
				t.Errorf("change = %+v, want denied %t", change, tt.denied)
			}
			if slices.Contains(change.Gaps, review.GapHidden) != tt.gap {
				t.Errorf("gaps: %v", change.Gaps)
			}
			if events := f.logged("security event"); (len(events) == 1) != tt.denied {
				t.Errorf("security events: %v", events)
			}
		})
	}
}

// The common path of files in several directories is compared with theirs.
func TestCommonPathOfManyFiles(t *testing.T) {
	t.Parallel()
	for root, want := range map[string]bool{
		"//depot/a/...": false, "//depot/a/*": false, "//depot/a/b/...": false, "//depot/...": true, "//...": true, "": false,
	} {
		x := &fetch{server: &server{info: ServerInfo{CaseHandling: "sensitive"}}}
		x.root = root
		for _, path := range []string{"//depot/a/b/c/1", "//depot/a/b/2", "//depot/a/x/3"} {
			x.files = append(x.files, &file{path: path})
		}
		if got := x.exceeds(); got != want {
			t.Errorf("%q: hidden files %t, want %t", root, got, want)
		}
	}
}
