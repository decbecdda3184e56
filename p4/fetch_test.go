package p4

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/criticizer/criticizer/internal/failure"
	"github.com/criticizer/criticizer/internal/testkit"
	"github.com/criticizer/criticizer/p4/internal/command"
	"github.com/criticizer/criticizer/review"
)

func TestFetchReadsMetadata(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.submitted(12, rev{path: "//depot/a.c", rev: 1, action: "add", data: "int a;\n"})
	f.describes(12, []string{"desc", "Gr\xfc\xdfe\n", "client", "ws"}, rev{path: "//depot/a.c", rev: 1, action: "add", data: "int a;\n"})
	f.replies["describe 12"] = reply{Out: slices.Concat(
		command.AppendRecord(nil, "info", "data", "printed by a trigger", "level", 0),
		stat("something", "else"),
		f.replies["describe 12"].Out,
	)}
	change, err := f.fetch(12)
	testkit.NoError(t, err)
	if change.Number != 12 || change.User != "ann" || change.Description != "Grüße\n" {
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

// A merge of any number of files costs one filelog.
func TestMergesCostOneMoreProcess(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	var now []rev
	for i := range 50 {
		name := fmt.Sprintf("f%d", i)
		now = append(now, rev{path: "//depot/rel/" + name, rev: 2, action: "integrate", data: "new\n"})
		f.has(rev{path: "//depot/rel/" + name, rev: 1, data: "old\n"}, rev{path: "//depot/main/" + name, rev: 7, data: "new\n"})
		f.reply("filelog -m 1 //depot/rel/"+name+"#2", stat("depotFile", "//depot/rel/"+name, "how0,0", "copy from", "file0,0", "//depot/main/"+name, "erev0,0", "#7"))
	}
	f.submitted(12, append(now, rev{path: "//depot/rel/edited", rev: 2, data: "new\n"})...)
	f.has(rev{path: "//depot/rel/edited", rev: 1, data: "old\n"}, rev{path: "//depot/main/edited", rev: 3, data: "new\n"})
	f.reply("filelog -m 1 //depot/rel/edited#2", stat("depotFile", "//depot/rel/edited", "how0,0", "edit from", "file0,0", "//depot/main/edited", "erev0,0", "#3"))
	change, err := f.fetch(12)
	testkit.NoError(t, err)
	for _, file := range change.Files {
		if file.Skipped != review.SkipIntegrated {
			t.Errorf("%s: skipped = %q, want %q", file.DepotPath, file.Skipped, review.SkipIntegrated)
		}
	}
	if got := f.calls(); len(got) != 8 {
		t.Errorf("%d processes, want 8: info, describe, protects, filelog twice, print, users, reviews", len(got))
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
	testkit.NoError(t, err)
	if got, want := change.Files[0].DepotPath, "//depot/a dir/50% @home#*.c"; got != want {
		t.Errorf("depot path = %q, want %q", got, want)
	}
	moved := change.Files[1]
	if moved.DepotPath != "//depot/café" || moved.FromPath != "//depot/was @" || moved.FromRevision != 3 {
		t.Errorf("moved file = %+v", moved)
	}
	if change.Files[0].Diff == "" || moved.Diff == "" {
		t.Error("a file has no diff: its path was not passed to p4 as p4 spells it")
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
	_, err := f.fetch(12)
	testkit.NoError(t, err)
	var got []string
	for _, c := range f.calls() {
		got = append(got, strings.Join(c.Args, " "))
	}
	want := []string{
		"-G -zprog=criticizer info -s",
		"-G -zprog=criticizer describe 12", "-G -zprog=criticizer protects", "-G -zprog=criticizer -x - print",
		"-G -zprog=criticizer users ann", "-G -zprog=criticizer reviews -c 12",
	}
	if !slices.Equal(got, want) {
		t.Errorf("commands:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if n := len(f.calls()[3].Lines); n != 400 {
		t.Errorf("revisions printed = %d, want 400", n)
	}
}

func TestFetchOfAnEmptyChangelist(t *testing.T) {
	t.Parallel()
	for changeType, want := range map[string]review.EmptyReason{"restricted": review.EmptyRestricted, "public": review.EmptyNoFiles} {
		f := newFake(t)
		f.describes(12, []string{"changeType", changeType, "desc", "<description: restricted, no permission to view>\n"})
		change, err := f.fetch(12)
		testkit.NoError(t, err)
		if change.Empty != want || len(change.Files) != 0 || change.Description != "" || !change.Denied() {
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
	}{
		{"a pending changelist", map[string]reply{"info -s": {Out: stat("caseHandling", "sensitive", "serverServices", "standard")}, "describe 12": {Out: stat("change", "12", "status", "pending", "shelved", "")}}, failure.InputInvalid},
		{"a changelist that is pending on a replica", map[string]reply{"describe 12": {Out: stat("change", "12", "status", "pending", "time", "1")}}, failure.ReplicaBehind},
		{"a changelist that does not exist", map[string]reply{"describe 12": {Out: unknown, Exit: 1}, "changes -m 1": {Out: stat("change", "40")}}, failure.NotFound},
		{"a changelist that has not arrived", map[string]reply{"describe 12": {Out: unknown, Exit: 1}, "changes -m 1": {Out: stat("change", "11")}}, failure.ReplicaBehind},
		{"a server without changelists", map[string]reply{"describe 12": {Out: unknown, Exit: 1}, "changes -m 1": {}}, failure.ReplicaBehind},
		{"a session that expires before print", map[string]reply{"print": {Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1}}, failure.AuthDenied},
		{"exit status 0 without the requested record", map[string]reply{"describe 12": {Out: stat("change", "13")}}, failure.UpstreamInternal},
		{"exit status 0 with a severe record", map[string]reply{"describe 12": {Out: message(3, 6, "You don't have permission for this operation.\n")}}, failure.PermissionDenied},
		{"exit status 1 without a message", map[string]reply{"describe 12": {Exit: 1}}, failure.UpstreamInternal},
		{"exit status 1 after a complete record", map[string]reply{"reviews -c 12": {Out: stat("user", "bob", "email", "bob@example.com"), Exit: 1}}, failure.UpstreamInternal},
		{"a connection that is refused", map[string]reply{"describe 12": {Stderr: "Perforce client error:\n\tConnect to server failed; check $P4PORT.\n", Exit: 1}}, failure.NetworkUnreachable},
		{"output that stops in a record", map[string]reply{"describe 12": {Out: stat("change", "12")[:20]}}, failure.UpstreamInternal},
		{"output that is not marshalled", map[string]reply{"describe 12": {Out: []byte("Change 12 by ann")}}, failure.UpstreamInternal},
		{"a revision left out without a message", map[string]reply{"print": {}}, failure.UpstreamInternal},
		{"a replica without the archive", map[string]reply{"print": {Out: message(3, 33, "Transfer of librarian file 'x' failed.\n"), Exit: 1}}, failure.ReplicaBehind},
		{"more output than is read", map[string]reply{"describe 12": {Out: stat("desc", strings.Repeat("x", 3<<20))}}, failure.TooLarge},
		{"a change without a time", map[string]reply{"describe 12": {Out: stat("change", "12", "status", "submitted")}}, failure.UpstreamInternal},
		{"info that is hidden from an expired ticket", map[string]reply{
			"info -s": {Out: stat("userName", "reader")}, "describe 12": {Out: message(3, 4, "Your session has expired, please login again.\n"), Exit: 1},
		}, failure.AuthDenied},
		{"a charset that p4 does not know", map[string]reply{"info -s": {Stderr: "Character set must be one of:\nnone, auto, utf8\nCheck P4CHARSET and your '-C' option.\n", Exit: 1}}, failure.ConfigInvalid},
		{"a charset that p4 reports on its output", map[string]reply{"info -s": {Out: []byte("Character set must be one of:\nnone, auto, utf8\nCheck P4CHARSET and your '-C' option.\n"), Exit: 1}}, failure.ConfigInvalid},
		{"an unknown message", map[string]reply{"describe 12": {Out: message(3, 99, "Something about SECRET.\n"), Exit: 1}}, failure.Unknown},
		{"text without a record", map[string]reply{"describe 12": {Stderr: "The moon at 10.0.0.1:1666 eats SECRET cheese.\n", Exit: 1}}, failure.UpstreamInternal},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			f.submitted(12, file)
			maps.Copy(f.replies, c.replies)
			change, err := f.fetch(12, func(c *Config) { c.limits.outputBytes = 2 << 20 })
			if err == nil {
				t.Fatalf("change = %+v, want an error", change)
			}
			if failure.ClassOf(err) != c.class {
				t.Errorf("error is %s: %v; want %s", failure.ClassOf(err), err, c.class)
			}
			if strings.Contains(err.Error(), "SECRET") {
				t.Errorf("error quotes the server: %v", err)
			}
		})
	}
}

func TestFetchRefusesANegativeNumber(t *testing.T) {
	t.Parallel()
	if _, err := newFake(t).fetch(-1); failure.ClassOf(err) != failure.InputInvalid {
		t.Errorf("error = %v, want InputInvalid", err)
	}
}

func TestServersInUnicodeMode(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.reply("info -s", stat("caseHandling", "insensitive", "unicode", "enabled"))
	fetcher := f.fetcher()
	info, err := fetcher.Info(t.Context())
	if err != nil || !info.Unicode || info.CaseHandling != caseInsensitive {
		t.Fatalf("info = %+v, %v", info, err)
	}
	f.submitted(12, rev{path: "//Depot/f", rev: 1, action: "add", data: "new\n"})
	fetcher = f.fetcher()
	change, err := fetcher.Read(t.Context(), 12, review.ReadOptions{})
	if err != nil || change.Files[0].Skipped != "" {
		t.Fatalf("change = %+v, %v", change, err)
	}
	if env := f.calls()[2].Env; !slices.Contains(env, "P4CHARSET=utf8") {
		t.Errorf("environment of describe = %q, want P4CHARSET=utf8", env)
	}
}

func TestInfoIsRepeatedWithACharset(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.reply("info -s", message(3, 36, "Unicode server permits only unicode enabled clients.\n"))
	_, err := f.fetcher().Info(t.Context())
	if failure.ClassOf(err) != failure.ConfigInvalid {
		t.Errorf("error = %v, want ConfigInvalid", err)
	}
	calls := f.calls()
	if len(calls) != 2 || !slices.Contains(calls[0].Env, "P4CHARSET=none") || !slices.Contains(calls[1].Env, "P4CHARSET=utf8") {
		t.Errorf("calls = %+v, want one with none and one with utf8", calls)
	}
}

// A broker may answer for a server that is down, in words of its administrator.
func TestBrokerThatIsClosed(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]failure.Class{
		"Perforce is down for maintenance until 6 pm.": failure.ServerBusy,
		"We are moving. Ask in #perforce.":             failure.UpstreamInternal,
	} {
		f := newFake(t)
		f.reply("info -s", command.AppendRecord(nil, "info", "data", text, "level", 0))
		f.reply("changes -s submitted -m 1", f.replies["info -s"].Out)
		if err := f.fetcher().Ping(t.Context()); failure.ClassOf(err) != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A broker's administrator writes its messages: an unknown one is a refusal by the
// broker, which is retried.
func TestUnknownMessageOfBroker(t *testing.T) {
	t.Parallel()
	for _, broker := range []bool{true, false} {
		f := newFake(t)
		want := failure.InvariantViolated
		if broker {
			f.reply("info -s", stat("serverVersion", "v", "caseHandling", "sensitive"), stat("brokerAddress", "b:1666", "brokerVersion", "P4BROKER/x"))
			want = failure.UpstreamUnavailable
		}
		f.reply("describe 12", message(3, 1, "Not on Sundays.\n"))
		if _, err := f.fetch(12); failure.ClassOf(err) != want {
			t.Errorf("broker %t: %v, want %s", broker, err, want)
		}
	}
}
