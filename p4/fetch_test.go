package p4

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/failure"
	"github.com/criticizer/criticizer/review"
)

func TestFetchReadsMetadata(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "int a;\n"})
	f.describes(12, []string{"desc", "Gr\xfc\xdfe\n", "client", "ws"}, rev{path: "//depot/a.c", rev: 1, action: "add", data: "int a;\n"})
	f.replies["describe 12"] = reply{Out: slices.Concat(
		encode("info", []string{"data", "a trigger speaks first"}, []any{"level", int32(0)}),
		stat("something", "else"),
		f.replies["describe 12"].Out,
	)}
	change, err := f.fetch(12)
	if err != nil {
		t.Fatal(err)
	}
	if change.Number != 12 || change.User != "ann" || change.Client != "ws" || change.Description != "Grüße\n" {
		t.Errorf("change = %+v", change)
	}
	if want := time.Date(1999, 7, 23, 19, 33, 52, 0, time.UTC); !change.Time.Equal(want) {
		t.Errorf("time = %v, want %v", change.Time, want)
	}
	file := change.Files[0]
	if file.Revision != 1 || file.Size != 7 || file.Type != "text" || file.Action != review.ActionAdd || file.Digest == "" {
		t.Errorf("file = %+v", file)
	}
}

// Each case is one file of a submitted changelist and what becomes of it.
func TestFetchFiles(t *testing.T) {
	t.Parallel()
	const added = "@@ -0,0 +1,1 @@\n+new\n"
	const edited = "@@ -1,1 +1,1 @@\n-old\n+new\n"
	cases := []struct {
		name    string
		file    rev
		others  []rev             // other revisions the server has
		replies map[string][]byte // further answers, or other ones
		diff    string
		skipped review.SkipReason
	}{
		{name: "add is all new", file: rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"}, diff: added},
		{name: "add over a deleted revision is all new", file: rev{path: "//depot/f", rev: 3, action: "add", data: "new\n"}, diff: added},
		{
			name: "edit is compared with the revision before", file: rev{path: "//depot/f", rev: 2, data: "new\n"},
			others: []rev{{path: "//depot/f", rev: 1, data: "old\n"}}, diff: edited,
		},
		{
			name: "integrate is compared with the revision before", file: rev{path: "//depot/f", rev: 5, action: "integrate", data: "new\n"},
			others: []rev{{path: "//depot/f", rev: 4, data: "old\n"}}, diff: edited,
		},
		{name: "delete", file: rev{path: "//depot/f", rev: 2, action: "delete"}, skipped: review.SkipDeleted},
		{name: "move/delete", file: rev{path: "//depot/f", rev: 2, action: "move/delete"}, skipped: review.SkipDeleted},
		{name: "purge", file: rev{path: "//depot/f", rev: 2, action: "purge"}, skipped: review.SkipPurged},
		{
			name: "move/add is compared with what was moved", file: rev{path: "//depot/f", rev: 1, action: "move/add", data: "new\n", from: "//depot/was#7"},
			others: []rev{{path: "//depot/was", rev: 7, data: "old\n"}}, diff: edited,
		},
		{
			name: "move without an edit", file: rev{path: "//depot/f", rev: 1, action: "move/add", data: "old\n", from: "//depot/was#7"},
			others: []rev{{path: "//depot/was", rev: 7, data: "old\n"}}, skipped: review.SkipUnchanged,
		},
		{
			name: "branch is compared with the source that filelog tells", file: rev{path: "//depot/f", rev: 1, action: "branch", data: "new\n"},
			others: []rev{{path: "//depot/main/f", rev: 4, data: "old\n"}},
			replies: map[string][]byte{"filelog -m 1 //depot/f#1": stat("depotFile", "//depot/f", "rev0", "1", "how0,0", "branch into",
				"file0,0", "//depot/rel/f", "erev0,0", "#1", "how0,1", "branch from", "file0,1", "//depot/main/f", "srev0,1", "#none", "erev0,1", "#4")},
			diff: edited,
		},
		{
			name: "branch without a known source is all new", file: rev{path: "//depot/f", rev: 1, action: "branch", data: "new\n"},
			replies: map[string][]byte{"filelog -m 1 //depot/f#1": stat("depotFile", "//depot/f", "rev0", "1")}, diff: added,
		},
		{
			name: "branch whose source may not be read is all new", file: rev{path: "//depot/f", rev: 1, action: "branch", data: "new\n", from: "//depot/main/f#4"},
			replies: map[string][]byte{"print //depot/main/f#4": message(2, 17, "//depot/main/f#4 - no permission for operation on file(s).\n")}, diff: added,
		},
		{name: "binary", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "binary+x", data: "\x00"}, skipped: review.SkipBinary},
		{name: "old name of a binary type", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "uxbinary", data: "\x00"}, skipped: review.SkipBinary},
		{name: "unheard-of type", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "hologram", data: "x"}, skipped: review.SkipBinary},
		{name: "symlink", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "symlink", data: "target\n"}, skipped: review.SkipSymlink},
		{
			name: "binary that became text is all new", file: rev{path: "//depot/f", rev: 2, data: "new\n"},
			others: []rev{{path: "//depot/f", rev: 1, typ: "binary", data: "\x00\x01"}}, diff: added,
		},
		{
			name: "type change alone", file: rev{path: "//depot/f", rev: 2, typ: "text+x", data: "same\n"},
			others: []rev{{path: "//depot/f", rev: 1, data: "same\n"}}, skipped: review.SkipUnchanged,
		},
		{name: "empty file", file: rev{path: "//depot/f", rev: 1, action: "add"}, skipped: review.SkipUnchanged},
		{
			name: "emptied file", file: rev{path: "//depot/f", rev: 2},
			others: []rev{{path: "//depot/f", rev: 1, data: "old\n"}}, diff: "@@ -1,1 +0,0 @@\n-old\n",
		},
		{
			name: "latin-1 text is decoded", file: rev{path: "//depot/f", rev: 2, data: "caf\xe9 new\n"},
			others: []rev{{path: "//depot/f", rev: 1, data: "caf\xe9 old\n"}}, diff: "@@ -1,1 +1,1 @@\n-café old\n+café new\n",
		},
		{
			name: "conversion to UTF-8 alone", file: rev{path: "//depot/f", rev: 2, data: "café “x”\n"},
			others: []rev{{path: "//depot/f", rev: 1, data: "caf\xe9 \x93x\x94\n"}}, skipped: review.SkipUnchanged,
		},
		{name: "text with NUL", file: rev{path: "//depot/f", rev: 1, action: "add", data: "a\x00b\n"}, skipped: review.SkipNotDecodable},
		{name: "text of an encoding nobody declared", file: rev{path: "//depot/f", rev: 1, action: "add", data: "\x82\xb1\x81\x41\n"}, skipped: review.SkipNotDecodable},
		{name: "utf16 with its mark", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "utf16", data: "\xff\xfen\x00e\x00w\x00\n\x00", digest: "9CD599A3523898E6A12E13EC787DA50A"}, diff: added},
		{name: "utf16 that the client converted", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "utf16", data: "new\n"}, diff: added},
		{name: "utf8 printed without its mark", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "utf8", data: "new\n", digest: "3AB30AF4B03B9302A7DF42D8244E15FA"}, diff: added},
		{name: "utf16 that is not what the server has", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "utf16", data: "??\n", digest: "9CD599A3523898E6A12E13EC787DA50A"}, skipped: review.SkipUnreadable},
		{
			name: "CR of the content stays", file: rev{path: "//depot/f", rev: 2, data: "a\r\nnew\r\n"},
			others: []rev{{path: "//depot/f", rev: 1, data: "a\r\nold\r\n"}}, diff: "@@ -1,2 +1,2 @@\n a\r\n-old\r\n+new\r\n",
		},
		{
			name: "missing newline at the end", file: rev{path: "//depot/f", rev: 2, data: "new"},
			others: []rev{{path: "//depot/f", rev: 1, data: "old\n"}}, diff: "@@ -1,1 +1,1 @@\n-old\n+new\n\\ No newline at end of file\n",
		},
		{
			name: "expansion of keywords is no change", file: rev{path: "//depot/f", rev: 2, typ: "text+k", data: "$Id: //depot/f#2 $ $Date: x$\n"},
			others: []rev{{path: "//depot/f", rev: 1, typ: "ktext", data: "$Id: //depot/f#1 $ $Date: y$\n"}}, skipped: review.SkipUnchanged,
		},
		{
			name: "keywords count in files without +k", file: rev{path: "//depot/f", rev: 2, data: "$Id: b$\n"},
			others: []rev{{path: "//depot/f", rev: 1, data: "$Id: a$\n"}}, diff: "@@ -1,1 +1,1 @@\n-$Id: a$\n+$Id: b$\n",
		},
		{
			name: "+ko expands two keywords only", file: rev{path: "//depot/f", rev: 2, typ: "text+ko", data: "$Id: b$ $Date: b$\n"},
			others: []rev{{path: "//depot/f", rev: 1, typ: "text+ko", data: "$Id: a$ $Date: a$\n"}}, diff: "@@ -1,1 +1,1 @@\n-$Id$ $Date: a$\n+$Id$ $Date: b$\n",
		},
		{
			name: "+S whose old revision is purged", file: rev{path: "//depot/f", rev: 9, typ: "text+S", data: "new\n"},
			replies: map[string][]byte{"print //depot/f#8": message(3, 17, "Old revision 1.8 of tempobj //depot/f purged; try using head revision.\n")},
			skipped: review.SkipPurged,
		},
		{
			name: "old revision that does not exist", file: rev{path: "//depot/f", rev: 9, data: "new\n"}, skipped: review.SkipPurged,
		},
		{
			name: "revision purged in the midst of printing", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "text+S", data: "new\n"},
			replies: map[string][]byte{"print //depot/f#1": slices.Concat(stat("depotFile", "//depot/f", "rev", "1", "action", "add", "type", "text+S", "fileSize", "4"),
				message(3, 17, "Old revision 1.1 of tempobj x purged; try using head revision.\n"))},
			skipped: review.SkipPurged,
		},
		{
			name: "revision the account may not read", file: rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"},
			replies: map[string][]byte{"print //depot/f#1": message(2, 17, "//depot/f#1 - protected namespace - access denied.\n")}, skipped: review.SkipDenied,
		},
		{
			name: "content the server cannot convert", file: rev{path: "//depot/f", rev: 1, action: "add", typ: "unicode", data: "new\n"},
			replies: map[string][]byte{"print //depot/f#1": slices.Concat(stat("depotFile", "//depot/f", "rev", "1", "type", "unicode", "fileSize", "4"),
				message(2, 4, "Translation of file content failed near line 1 file //depot/f\n"))},
			skipped: review.SkipNotDecodable,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, c.file)
			f.has(c.others...)
			for key, out := range c.replies {
				f.reply(key, out)
			}
			change, err := f.fetch(12)
			if err != nil {
				t.Fatal(err)
			}
			if got := change.Files[0]; got.Diff != c.diff || got.Skipped != c.skipped {
				t.Errorf("diff = %q, skipped = %q; want %q, %q", got.Diff, got.Skipped, c.diff, c.skipped)
			}
		})
	}
}

func TestFetchDecodesPathsAndHandsThemBackEncoded(t *testing.T) {
	t.Parallel()
	const path = "//depot/a dir/50%25 %40home%23%2A.c"
	f := newFake(t)
	f.submitted(12, rev{path: path, rev: 2, data: "new\n"},
		rev{path: "//depot/caf\xe9", rev: 1, action: "move/add", data: "x\n", from: "//depot/was %40#3"})
	f.has(rev{path: path, rev: 1, data: "old\n"}, rev{path: "//depot/was %40", rev: 3, data: "y\n"})
	change, err := f.fetch(12)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := change.Files[0].DepotPath, "//depot/a dir/50% @home#*.c"; got != want {
		t.Errorf("depot path = %q, want %q", got, want)
	}
	moved := change.Files[1]
	if moved.DepotPath != "//depot/café" || moved.FromPath != "//depot/was @" || moved.FromRevision != 3 {
		t.Errorf("moved file = %+v", moved)
	}
	if change.Files[0].Diff == "" || moved.Diff == "" {
		t.Error("a file has no diff: its path did not reach the server as the server spells it")
	}
}

func TestFetchCostsAConstantNumberOfProcesses(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var now, before []rev
	for i := range 200 {
		path := fmt.Sprintf("//depot/f%d", i)
		now, before = append(now, rev{path: path, rev: 2, data: "new\n"}), append(before, rev{path: path, rev: 1, data: "old\n"})
	}
	f.submitted(12, now...)
	f.has(before...)
	f.submitted(13, rev{path: "//depot/g", rev: 1, action: "add", data: "new\n"})
	fetcher := f.fetcher(slog.New(slog.DiscardHandler), nil)
	for _, number := range []review.Changelist{12, 13} {
		if _, err := fetcher.Fetch(t.Context(), number); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, c := range f.calls() {
		got = append(got, strings.Join(c.Args, " "))
	}
	want := []string{
		"-G -zprog=criticizer info -s",
		"-G -zprog=criticizer describe 12", "-G -zprog=criticizer -x - print",
		"-G -zprog=criticizer users ann", "-G -zprog=criticizer reviews -c 12",
		"-G -zprog=criticizer describe 13", "-G -zprog=criticizer -x - print",
		"-G -zprog=criticizer users ann", "-G -zprog=criticizer reviews -c 13",
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(f.calls()[2].Lines); n != 400 {
		t.Errorf("revisions printed = %d, want 400", n)
	}
}

func TestFetchKeepsLimits(t *testing.T) {
	t.Parallel()
	add := func(name string, size int) rev {
		return rev{path: "//depot/" + name, rev: 1, action: "add", data: strings.Repeat("x\n", size/2)}
	}
	const tooLarge = review.SkipTooLarge
	cases := []struct {
		name      string
		adjust    func(*Config)
		files     []rev
		others    []rev
		want      []review.SkipReason
		isPrinted int // revisions asked for
	}{
		{"a file that is too large is not even printed", func(c *Config) { c.MaxFileBytes = 100 }, []rev{add("a", 102), add("b", 100)}, nil, []review.SkipReason{tooLarge, ""}, 1},
		{
			"a file that was too large is not compared", func(c *Config) { c.MaxFileBytes = 100 },
			[]rev{{path: "//depot/a", rev: 2, data: "x\n"}}, []rev{{path: "//depot/a", rev: 1, data: strings.Repeat("x\n", 51)}}, []review.SkipReason{tooLarge}, 2,
		},
		{"files beyond the sum of bytes are skipped", func(c *Config) { c.MaxChangeBytes = 100 }, []rev{add("a", 60), add("b", 60), add("c", 40)}, nil, []review.SkipReason{"", tooLarge, ""}, 2},
		{"files beyond the count are skipped", func(c *Config) { c.MaxFiles = 1 }, []rev{add("a", 2), add("b", 2)}, nil, []review.SkipReason{"", tooLarge}, 1},
		{"files beyond the output of print are skipped", func(c *Config) { c.MaxOutputBytes = 100_000 }, []rev{add("a", 2), add("b", 90_000), add("c", 90_000)}, nil, []review.SkipReason{"", "", tooLarge}, 3},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, c.files...)
			f.has(c.others...)
			change, err := f.fetcher(slog.New(slog.DiscardHandler), c.adjust).Fetch(t.Context(), 12)
			if err != nil {
				t.Fatal(err)
			}
			for i, file := range change.Files {
				if file.Skipped != c.want[i] || (file.Diff == "") != (file.Skipped != "") {
					t.Errorf("%s: skipped = %q with a diff of %d bytes, want %q", file.DepotPath, file.Skipped, len(file.Diff), c.want[i])
				}
			}
			for _, call := range f.calls() {
				if call.Args[len(call.Args)-1] == "print" && len(call.Lines) != c.isPrinted {
					t.Errorf("printed %d revisions, want %d", len(call.Lines), c.isPrinted)
				}
			}
		})
	}
}

func TestFetchOfAnEmptyChangelist(t *testing.T) {
	t.Parallel()
	for changeType, want := range map[string]review.EmptyReason{"restricted": review.EmptyRestricted, "public": review.EmptyNoFiles} {
		f := newFake(t)
		f.describes(12, []string{"changeType", changeType, "desc", "<description: restricted, no permission to view>\n"})
		change, err := f.fetch(12)
		if err != nil {
			t.Fatal(err)
		}
		if change.Empty != want || len(change.Files) != 0 || !strings.HasPrefix(change.Description, "<description") {
			t.Errorf("%s: change = %+v, want empty because %q", changeType, change, want)
		}
	}
}

func TestFetchFails(t *testing.T) {
	t.Parallel()
	file := rev{path: "//depot/f", rev: 1, action: "add", data: "new\n"}
	unknown := message(3, 2, "Change 12 unknown.\n")
	cases := []struct {
		name    string
		replies map[string]reply
		class   failure.Class
		says    string
	}{
		{"a pending changelist", map[string]reply{"describe 12": {Out: stat("change", "12", "status", "pending", "shelved", "")}}, failure.InputInvalid, "pending or shelved"},
		{"a changelist that does not exist", map[string]reply{"describe 12": {Out: unknown, Exit: 1}, "changes -m 1": {Out: stat("change", "40")}}, failure.NotFound, "check its number"},
		{"a changelist that has not arrived", map[string]reply{"describe 12": {Out: unknown, Exit: 1}, "changes -m 1": {Out: stat("change", "11")}}, failure.ReplicaBehind, "newer than 11"},
		{"a server without changelists", map[string]reply{"describe 12": {Out: unknown, Exit: 1}, "changes -m 1": {}}, failure.ReplicaBehind, "newer than 0"},
		{"a session that ends on the way", map[string]reply{"print": {Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1}}, failure.AuthDenied, "renew the ticket"},
		{"exit status 0 without the record asked for", map[string]reply{"describe 12": {Out: stat("change", "13")}}, failure.UpstreamInternal, "did not describe"},
		{"exit status 0 with a severe record", map[string]reply{"describe 12": {Out: message(3, 6, "You don't have permission for this operation.\n")}}, failure.PermissionDenied, "p4 protect"},
		{"exit status 1 without a message", map[string]reply{"describe 12": {Exit: 1}}, failure.UpstreamInternal, "no message"},
		{"exit status 1 after a complete record", map[string]reply{"reviews -c 12": {Out: stat("user", "bob", "email", "bob@example.com"), Exit: 1}}, failure.UpstreamInternal, "no message"},
		{"a connection that is refused", map[string]reply{"describe 12": {Stderr: "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n", Exit: 1}}, failure.NetworkUnreachable, "check the configured port"},
		{"a connection that is lost", map[string]reply{"print": {Out: slices.Concat(stat("depotFile", "//depot/f", "rev", "1"), chunk("ne"), message(3, 38, "Partner exited unexpectedly.\n")), Exit: 1}}, failure.NetworkUnreachable, "closed"},
		{"output that stops in a record", map[string]reply{"describe 12": {Out: stat("change", "12")[:20]}}, failure.UpstreamInternal, "unexpected EOF"},
		{"output that is not marshalled", map[string]reply{"describe 12": {Out: []byte("Change 12 by ann")}}, failure.UpstreamInternal, "not what p4 -G prints"},
		{"content that is cut short", map[string]reply{"print": {Out: slices.Concat(stat("depotFile", "//depot/f", "rev", "1", "type", "text", "fileSize", "4"), chunk("ne"), chunk(""))}}, failure.UpstreamInternal, "p4 verify"},
		{"a revision left out without a word", map[string]reply{"print": {}}, failure.UpstreamInternal, "left out"},
		{"a replica without the archive", map[string]reply{"print": {Out: message(3, 33, "Transfer of librarian file 'x' failed.\n"), Exit: 1}}, failure.ReplicaBehind, "does not have"},
		{"more output than is read", map[string]reply{"describe 12": {Out: stat("desc", strings.Repeat("x", 3<<20))}}, failure.TooLarge, "too much"},
		{"a file without a revision", map[string]reply{"describe 12": {Out: stat("change", "12", "status", "submitted", "time", "1", "depotFile0", "//depot/f", "rev0", "none")}}, failure.UpstreamInternal, "no revision"},
		{"a change without a time", map[string]reply{"describe 12": {Out: stat("change", "12", "status", "submitted")}}, failure.UpstreamInternal, "no time"},
		{"a server that does not say how it handles case", map[string]reply{"info -s": {Out: stat("serverVersion", "P4D")}}, failure.UpstreamInternal, "handles case"},
		{"a message nobody has listed", map[string]reply{"users ann": {Out: message(3, 4, "Something about SECRET.\n"), Exit: 1}}, failure.Unknown, "not known"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, file)
			maps.Copy(f.replies, c.replies)
			change, err := f.fetcher(slog.New(slog.DiscardHandler), func(c *Config) { c.MaxOutputBytes = 2 << 20 }).Fetch(t.Context(), 12)
			if err == nil {
				t.Fatalf("change = %+v, want an error", change)
			}
			if failure.ClassOf(err) != c.class || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error is %s: %v; want %s with %q", failure.ClassOf(err), err, c.class, c.says)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("error quotes the server: %v", err)
			}
		})
	}
}

func TestFetchRefusesANumberThatIsNone(t *testing.T) {
	t.Parallel()
	if _, err := newFake(t).fetch(-1); failure.ClassOf(err) != failure.InputInvalid {
		t.Errorf("error = %v, want InputInvalid", err)
	}
}

func TestServersInUnicodeMode(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.reply("info -s", stat("caseHandling", "insensitive", "unicode", "enabled"))
	fetcher := f.fetcher(slog.New(slog.DiscardHandler), nil)
	info, err := fetcher.Info(t.Context())
	if err != nil || !info.Unicode || !info.foldsCase() {
		t.Fatalf("info = %+v, %v", info, err)
	}
	f.submitted(12, rev{path: "//Depot/f", rev: 1, action: "add", data: "new\n"})
	fetcher = f.fetcher(slog.New(slog.DiscardHandler), nil)
	change, err := fetcher.Fetch(t.Context(), 12)
	if err != nil || change.Files[0].Skipped != "" {
		t.Fatalf("change = %+v, %v", change, err)
	}
	if env := f.calls()[2].Env; !slices.Contains(env, "P4CHARSET=utf8") {
		t.Errorf("environment of describe = %q, want P4CHARSET=utf8", env)
	}
}

func TestInfoIsAskedAgainWithACharsetOfAServerThatWantsOne(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.reply("info -s", message(3, 36, "Unicode server permits only unicode enabled clients.\n"))
	_, err := f.fetcher(slog.New(slog.DiscardHandler), nil).Info(t.Context())
	if failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("error = %v, want ConfigInvalid", err)
	}
	calls := f.calls()
	if len(calls) != 2 || !slices.Contains(calls[0].Env, "P4CHARSET=none") || !slices.Contains(calls[1].Env, "P4CHARSET=utf8") {
		t.Errorf("calls = %+v, want one with none and one with utf8", calls)
	}
}
