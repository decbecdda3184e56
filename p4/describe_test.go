package p4

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/encoding/htmlindex"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/review"
)

// Readers of a restricted changelist need access to its files: only the author is notified,
// unless the configuration says otherwise.
func TestRestrictedChange(t *testing.T) {
	t.Parallel()
	for restrictedTo, want := range map[RestrictedTo]int{"author": 1, Everyone: 2} {
		f := newFake(t)
		now := rev{path: "//depot/fix.c", rev: 1, action: "add", data: "int a = 2;\n"}
		f.submitted(12, now)
		f.describes(12, []string{"changeType", "restricted"}, now)
		f.reply("reviews -c 12", stat("user", "eve", "email", "eve@example.com"))
		change, err := f.fetch(12, func(c *Config) { c.RestrictedTo = restrictedTo })
		testkit.NoError(t, err)
		if len(change.Recipients) != want || change.Restricted != (want == 1) || change.Files[0].Diff == "" {
			t.Errorf("%s: restricted %t, recipients %v", restrictedTo, change.Restricted, change.Recipients)
		}
	}
}

// A changelist that is too large to be described is skipped by the rules that its
// description decides, and is not reviewed otherwise: a replay would fail in the same way.
func TestHugeChange(t *testing.T) {
	t.Parallel()
	file := rev{path: "//depot/import/a.c", rev: 1, action: "add", data: "x\n"}
	spec := stat("Change", "12", "Date", "2026/09/30 18:00:00", "Client", "ann-ws", "User", "ann", "Status", "submitted", "Type", "public", "Description", "Import. #noreview\n")
	tooLarge := message(3, 35, "Request too large (over 50000); see 'p4 help maxresults'.\n")
	for name, tt := range map[string]struct {
		head, full []byte // of describe -m 1, and of describe
		skip       SkipRules
		skipped    review.SkipRule
		last       bool
	}{
		"by its user":                        {skip: SkipRules{Users: []string{"ann"}}, skipped: review.SkipRuleUser},
		"by its description":                 {skip: SkipRules{Tags: []string{"#noreview"}}, skipped: review.SkipRuleTag},
		"by its common path":                 {skip: SkipRules{Paths: []string{"//depot/import/..."}}, skipped: review.SkipRulePaths},
		"its common path is wider":           {skip: SkipRules{Paths: []string{"//depot/import/a.c"}}},
		"by no rule":                         {},
		"and one file as well":               {head: tooLarge, skip: SkipRules{Tags: []string{"#noreview"}}, skipped: review.SkipRuleTag},
		"more output than is read":           {full: stat("desc", strings.Repeat("x", 3<<20)), skip: SkipRules{Users: []string{"ann"}}, skipped: review.SkipRuleUser},
		"the description takes all attempts": {full: []byte{}, last: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.describes(12, []string{"path", "//depot/import/...", "desc", "Import. #noreview\n"}, file)
			f.replies["describe -m 1 12"] = f.replies["describe 12"]
			f.reply("change -o 12", spec)
			f.reply("describe 12", tooLarge)
			if tt.head != nil {
				f.reply("describe -m 1 12", tt.head)
			}
			if tt.full != nil {
				f.reply("describe 12", tt.full)
			}
			if tt.last {
				f.replies["describe 12"] = reply{Stderr: "TCP receive exceeded maximum configured duration of 60 seconds.\n", Exit: 1}
			}
			change, err := f.fetcher(func(c *Config) { c.Skip, c.limits.outputBytes = tt.skip, 2<<20 }).
				Read(t.Context(), 12, review.ReadOptions{LastAttempt: tt.last})
			testkit.NoError(t, err)
			if change.SkippedBy != tt.skipped || change.User != "ann" {
				t.Errorf("%+v, want skipped by %q", change, tt.skipped)
			}
			if tt.skipped == "" && (change.Empty != review.EmptyTooLarge || len(change.Files) != 0 || change.Description != "" || len(change.Recipients) != 1) {
				t.Errorf("%+v, want it too large, for its author", change)
			}
		})
	}
}

// The files behind one that the server leaves out are in the change, too.
func TestFilesBehindAGap(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "a\n"}, rev{path: "//depot/b.c", rev: 1, action: "add", data: "b\n"})
	described := f.replies["describe 12"]
	described.Out = bytes.ReplaceAll(described.Out, []byte("File1"), []byte("File2"))
	for _, field := range []string{"action", "type", "rev", "fileSize", "digest"} {
		described.Out = bytes.Replace(described.Out, []byte(field+"1s"), []byte(field+"2s"), 1)
	}
	f.replies["describe 12"] = described
	change, err := f.fetch(12)
	if err != nil || len(change.Files) != 2 || change.Files[1].Diff == "" {
		t.Errorf("%+v, %v", change.Files, err)
	}
}

// A file that cannot be read harms only itself.
func TestOddFiles(t *testing.T) {
	t.Parallel()
	good := rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"}
	for name, tt := range map[string]struct {
		odd   rev
		want  review.SkipReason
		shown string
	}{
		"a name with control characters": {rev{path: "//depot/\x01\x1b.bin", rev: 1, action: "add", typ: "binary"}, review.SkipName, `//depot/\x01\x1b.bin`},
		"a name with a line end":         {rev{path: "//depot/b\r\n.c", rev: 1, action: "add", data: "x\n"}, review.SkipName, `//depot/b\x0d\x0a.c`},
		"one that was deleted":           {rev{path: "//depot/b\x7f.c", rev: 2, action: "delete"}, review.SkipDeleted, `//depot/b\x7f.c`},
		"a type that nobody knows":       {rev{path: "//depot/b.c", rev: 1, action: "add", typ: "holo\x01gram"}, review.SkipUnknownType, "//depot/b.c"},
		"a file without a revision":      {rev{path: "//depot/b.c", action: "add"}, review.SkipUnreadable, "//depot/b.c"},
		"a kind of action of its own":    {rev{path: "//depot/b.c", rev: 3, action: "teleport", data: "x\n"}, "", "//depot/b.c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, tt.odd, good)
			change, err := f.fetch(12)
			testkit.NoError(t, err)
			if odd := change.Files[0]; odd.Skipped != tt.want || odd.DepotPath != tt.shown || strings.Contains(odd.Type, "\x01") || change.Files[1].Diff == "" {
				t.Errorf("%+v", change.Files)
			}
		})
	}
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/secret/b\x01.c", rev: 1, action: "add", data: "x\n"}, good)
	change, err := f.fetch(12, func(c *Config) { c.Embargoed = []string{"//depot/secret/..."} })
	if err != nil || !change.Denied() {
		t.Errorf("a name with control characters below an embargo: %+v, %v", change, err)
	}
}

func TestStreamSpecAlone(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.describes(12, []string{"stream", "//streams/main"})
	change, err := f.fetch(12)
	if err != nil || change.Empty != review.EmptyStream || len(change.Recipients) != 1 {
		t.Errorf("%+v, %v", change, err)
	}
}

// Names decode as contents do, so that rules and owners match them.
func TestNamesInOtherCharsets(t *testing.T) {
	t.Parallel()
	owners := []string{"//depot/設定/... a@corp.test", "//depot/配置/... b@corp.test", "//depot/проект/... c@corp.test"}
	for charset, tt := range map[string]struct{ folder, user, owner string }{
		"shift_jis": {"設定", "太郎", "a@corp.test"}, "gb18030": {"配置", "李明", "b@corp.test"}, "windows-1251": {"проект", "иван", "c@corp.test"},
	} {
		encoding, err := htmlindex.Get(charset)
		testkit.NoError(t, err)
		encode := func(s string) string {
			out, err := encoding.NewEncoder().String(s)
			testkit.NoError(t, err)
			return out
		}
		file := rev{path: "//depot/" + encode(tt.folder) + "/a.c", rev: 1, action: "add", data: "new\n"}
		f := newFake(t)
		f.submitted(12, file)
		f.describes(12, []string{"user", encode(tt.user), "desc", encode(tt.folder) + "\n"}, file)
		f.reply("users "+encode(tt.user), stat("User", encode(tt.user), "Email", "ann@example.com"))
		read := func(skip SkipRules) (review.Change, error) {
			return f.fetch(12, func(c *Config) { c.CharsetFallback, c.Skip, c.Owners = charset, skip, owners })
		}
		change, err := read(SkipRules{})
		testkit.NoError(t, err)
		if change.Description != tt.folder+"\n" || change.User != tt.user || change.Recipients[0].User != tt.user || change.Files[0].Diff == "" {
			t.Errorf("%s: %+v", charset, change)
		}
		if len(change.Recipients) != 2 || change.Recipients[1].Address != tt.owner {
			t.Errorf("%s: recipients %v", charset, change.Recipients)
		}
		for _, skip := range []SkipRules{{Users: []string{tt.user}}, {Paths: []string{"//depot/" + tt.folder + "/..."}}} {
			if change, err := read(skip); err != nil || change.SkippedBy == "" {
				t.Errorf("%s: %+v does not skip %+v, %v", charset, skip, change, err)
			}
		}
	}
}

// An extra of describe that the server cannot find is left out at once; another failure is
// tried again.
func TestDescribeWithoutSources(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"})
	f.reply("describe 12", message(4, 33, "Operation 'user-describe' failed.\nCan't find //depot/old/a.c's successor rev!\n"))
	if _, err := f.fetch(12); failure.ClassOf(err) != failure.UpstreamInternal {
		t.Errorf("a server that does not describe it at all: %v", err)
	}
	f.describes(12, nil, rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"})
	f.reply("describe 12", f.replies["describe 12"].Out, message(3, 33, "Can't find the jobs.\n"))
	change, err := f.fetch(12)
	if err != nil || change.Files[0].Diff == "" || !slices.Contains(change.Gaps, review.GapSources) {
		t.Errorf("a failure after the description: %+v, %v", change, err)
	}
	f.describes(12, nil, rev{path: "//depot/a.c", rev: 1, action: "add", data: "new\n"})
	f.reply("describe 12", f.replies["describe 12"].Out, message(3, 38, "Partner exited unexpectedly.\n"))
	if _, err := f.fetch(12); failure.ClassOf(err) != failure.NetworkUnreachable {
		t.Errorf("a connection that is lost after the description: %v", err)
	}
}
