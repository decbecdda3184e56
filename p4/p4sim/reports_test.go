package main

import (
	"bufio"
	"bytes"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// records decodes what -ztag -Mj printed.
func records(t *testing.T, got result) []map[string]any {
	t.Helper()
	var all []map[string]any
	for line := range strings.Lines(got.stdout) {
		var one map[string]any
		if err := json.Unmarshal([]byte(line), &one); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, one)
	}
	return all
}

func holds(t *testing.T, record map[string]any, want map[string]any) {
	t.Helper()
	for key, value := range want {
		if record[key] != value {
			t.Errorf("%s is %q, want %q in %v", key, record[key], value, record)
		}
	}
}

func TestRecordsOfDescribe(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	all := records(t, p4(env, "", "-ztag", "-Mj", "describe", "2", "3"))
	if len(all) != 2 {
		t.Fatalf("%d records, want 2", len(all))
	}
	expanded := "$Id: //depot/src/a b.c#2 $\none\n2\n"
	holds(t, all[0], map[string]any{
		"change": "2", "path": "//depot/...", "desc": "Second line one.\n\nAnd three.\n",
		"depotFile1": "//depot/src/a b.c", "fileSize1": fmt.Sprint(len(expanded)), "digest1": fmt.Sprintf("%X", md5.Sum([]byte(expanded))),
		"action2": "move/add", "fromFile2": "//depot/src/odd%40%23%25%2Aname.txt", "fromRev2": "1",
		"action3": "move/delete", "digest3": nil, "fileSize3": nil, "fromFile1": nil,
	})
	holds(t, all[1], map[string]any{"oldChange": "2999", "desc": "Gr��e\n", "path": "//depot/src/*"})
}

func TestShortDescribeLeavesOutWhereFilesCameFrom(t *testing.T) {
	t.Parallel()
	all := records(t, p4(smallEnv(t, smallDepot), "", "-ztag", "-Mj", "describe", "-s", "2"))
	holds(t, all[0], map[string]any{"action2": "move/add", "fromFile2": nil, "fromRev2": nil})
}

func TestPendingAndShelvedChanges(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "describe", "7"))[0], map[string]any{
		"status": "pending", "depotFile0": "//depot/src/a b.c", "rev0": "3", "digest0": nil, "shelved": nil,
	})
	shelf := records(t, p4(env, "", "-ztag", "-Mj", "describe", "-S", "7"))[0]
	holds(t, shelf, map[string]any{"shelved": "", "path": nil, "rev0": "3", "fileSize0": "9"})
	expect(t, p4(env, "", "print", "-q", "//depot/src/a b.c@=7"), "one\nmore\n")
	expect(t, p4(env, "", "changes", "-s", "shelved"), "Change 7 on 2024/05/06 by vera@vera-ws *pending* 'On its way. '\n")
	expect(t, p4(env, "", "describe", "-S", "-du", "7"), "Change 7 by vera@vera-ws on 2024/05/06 10:00:00 *pending*\n\n\tOn its way.\n\n"+
		"Shelved files ...\n\n... //depot/src/a b.c#3 edit\n\nDifferences ...\n\n==== //depot/src/a b.c#3 (text) ====\n\n"+
		"@@ -1,1 +1,2 @@\n-one\n\\ No newline at end of file\n+one\n+more\n\n")
	expect(t, p4(env, "", "opened", "-a"), "//depot/src/a b.c#3 - edit change 7 (text) by vera@vera-ws\n")
	expect(t, p4(env, "", "diff2", "-q", "//depot/src/a b.c#3", "//depot/src/a b.c@=7"),
		"==== //depot/src/a b.c#3 (text) - //depot/src/a b.c#3 (text) ==== content\n")
}

func TestRestrictedChangesShowNothing(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	all := records(t, p4(env, "", "-ztag", "-Mj", "describe", "-s", "4"))
	holds(t, all[0], map[string]any{
		"changeType": "restricted", "desc": "<description: restricted, no permission to view>\n", "depotFile0": nil, "path": nil,
	})
	own := records(t, p4(env, "", "-u", "bruno", "-ztag", "-Mj", "describe", "-s", "4"))
	holds(t, own[0], map[string]any{"desc": "Secret.\n", "depotFile0": "//depot/secret.txt"})
}

func TestHiddenFilesAreMissing(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot, "P4SIM_HIDDEN=//depot/src/...")
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "describe", "-s", "2"))[0], map[string]any{
		"depotFile0": "//depot/logo.png", "depotFile1": nil,
	})
	expect(t, p4(env, "", "files", "//depot/..."), "//depot/link#1 - add change 1 (symlink)\n//depot/logo.png#2 - edit change 2 (binary)\n"+
		"//depot/secret.txt#1 - add change 4 (text)\n//depot/tmp.txt#2 - purge change 6 (text+S)\n")
	if got := p4(env, "", "print", "//depot/src/new.txt"); got.exit != 0 || got.stderr != "//depot/src/new.txt - protected namespace - access denied.\n" {
		t.Errorf("print of a hidden file: %+v", got)
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "", "print", "//depot/src/a b.c#1", "//depot/src/new.txt", "//depot/link"),
		"//depot/src/a b.c#1 - add change 1 (text+k)\n$Id: //depot/src/a b.c#1 $\none\ntwo\n"+
			"//depot/src/new.txt#2 - delete change 6 (text)\n//depot/link#1 - add change 1 (symlink)\nsrc/a b.c")
	expect(t, p4(env, "", "print", "-K", "-q", "//depot/src/a b.c#1"), "$Id$\none\ntwo\n")
	expect(t, p4(env, "", "print", "-q", "--offset", "1", "--size=2", "//depot/src/new.txt#1"), "dd")
	expect(t, p4(env, "", "-G", "print", "//depot/logo.png#1"), "{"+
		marshalled("code", "stat", "depotFile", "//depot/logo.png", "rev", "1", "change", "1", "action", "add", "type", "binary", "time", "1714557600", "fileSize", "4")+"0{"+
		marshalled("code", "binary", "data", "\x00\x01\x02\x03")+"0{"+marshalled("code", "binary", "data", "")+"0")
	purged := p4(env, "", "print", "-q", "//depot/tmp.txt")
	if purged.exit != 0 || purged.stdout != "" || purged.stderr != "//depot/tmp.txt#2 - no such file(s).\n" {
		t.Errorf("print of a purged file: %+v", purged)
	}
	name := filepath.Join(t.TempDir(), "copy")
	expect(t, p4(env, "", "print", "-q", "-o", name, "//depot/src/a b.c"), "")
	if content, err := os.ReadFile(name); err != nil || string(content) != "one" {
		t.Errorf("copy is %q, %v", content, err)
	}
}

func marshalled(words ...string) string {
	var b []byte
	for _, word := range words {
		b = appendMarshalled(b, word)
	}
	return string(b)
}

func TestLongContentComesInPieces(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789abcde\n", 600)
	env := smallEnv(t, "-- change 1 --\nx\n-- add text //depot/long --\n"+long)
	var pieces []int
	var whole string
	for _, r := range records(t, p4(env, "", "-ztag", "-Mj", "print", "//depot/long"))[1:] {
		data := r["data"].(string)
		pieces = append(pieces, len(data))
		whole += data
	}
	if whole != long || fmt.Sprint(pieces) != "[4096 4096 1408 0]" {
		t.Errorf("pieces of %v bytes", pieces)
	}
	expect(t, p4(env, "", "print", "-q", "//depot/long"), long)
}

func TestFilelogFollowsMoves(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "", "filelog", "-t", "//depot/src/new.txt#1"), `//depot/src/new.txt
... #1 change 2 move/add on 2024/05/02 10:00:00 by vera@vera-ws (text) 'Second line one.  And three. '
... ... moved from //depot/src/odd%40%23%25%2Aname.txt#1
//depot/src/odd%40%23%25%2Aname.txt
... #1 change 1 add on 2024/05/01 10:00:00 by bruno@bruno-ws (text) 'First. '
`)
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "filelog", "//depot/src/odd%40%23%25%2Aname.txt"))[0], map[string]any{
		"how0,0": "moved into", "file0,0": "//depot/src/new.txt", "srev0,0": "#none", "erev0,0": "#1", "action1": "add",
	})
}

func TestDiff2(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "", "diff2", "//depot/src/...@1", "//depot/src/...@2"),
		"==== //depot/src/a b.c#1 (text+k) - //depot/src/a b.c#2 (text+k) ==== content\n"+
			"1c1\n< $Id: //depot/src/a b.c#1 $\n---\n> $Id: //depot/src/a b.c#2 $\n3c3\n< two\n---\n> 2\n"+
			"==== <none> - //depot/src/new.txt#1 ====\n==== //depot/src/odd%40%23%25%2Aname.txt#1 - <none> ===\n")
	expect(t, p4(env, "", "diff2", "-u", "//depot/logo.png#1", "//depot/logo.png#2"),
		"Binary files //depot/logo.png#1 and //depot/logo.png#2 differ\n")
	for _, test := range []struct{ name, left, right, stderr string }{
		{"same revision", "//depot/logo.png#1", "//depot/logo.png#1", "//depot/logo.png#1 - no differing files.\n"},
		{"range of submitted changes", "//depot/logo.png@=1", "//depot/logo.png#1", "A revision range cannot be used here.\n"},
		{"no such file", "//depot/x", "//depot/y", "//depot/x - no such file(s).\n"},
	} {
		if got := p4(env, "", "diff2", "-q", test.left, test.right); got.stderr != test.stderr || got.stdout != "" {
			t.Errorf("%s: %+v", test.name, got)
		}
	}
}

func TestUsersAndReviewers(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot)
	expect(t, p4(env, "", "users"), "bruno <bruno@example.com> (bruno) accessed 2024/05/01\nvera <vera@example.com> (Vera Cruz) accessed 2024/05/01\n")
	expect(t, p4(env, "", "users", "v*"), "vera <vera@example.com> (Vera Cruz) accessed 2024/05/01\n")
	expect(t, p4(env, "", "reviews", "-c", "2"), "vera <vera@example.com> (Vera Cruz)\n")
	expect(t, p4(env, "", "reviews", "-c", "5"), "")
	expect(t, p4(env, "", "review", "-c", "6"), "Change 6 bruno <bruno@example.com> (bruno)\n")
	if got := p4(env, "", "users", "nobody"); got.exit != 0 || got.stderr != "nobody - no such user(s).\n" {
		t.Errorf("users nobody: %+v", got)
	}
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "user", "-o", "vera"))[0], map[string]any{
		"User": "vera", "Email": "vera@example.com", "Reviews0": "//depot/src/...", "Update": "2024/05/01 10:00:00",
	})
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "user", "-o", "nobody"))[0], map[string]any{
		"User": "nobody", "Email": "nobody@ws", "Update": nil,
	})
}

func TestSubscriptionsFromAFile(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "reviewers")
	text := "# pattern user email name\n//depot/*.png rita rita@example.test Rita Repo\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	env := smallEnv(t, smallDepot, "P4SIM_REVIEWERS="+name, "P4SIM_MAIL_DOMAIN=mail.test")
	expect(t, p4(env, "", "reviews", "-c", "2"), "rita <rita@example.test> (Rita Repo)\nvera <vera@mail.test> (Vera Cruz)\n")
}

func TestServerReports(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, smallDepot, "P4SIM_SERVER_ID=commit1", "P4SIM_CASE=insensitive", "P4SIM_ROOT=/ws")
	holds(t, records(t, p4(env, "", "-ztag", "-Mj", "info", "-s"))[0], map[string]any{
		"userName": "svc", "ServerID": "commit1", "caseHandling": "insensitive", "serverAddress": "sim:1666", "unicode": nil,
	})
	expect(t, p4(env, "", "login", "-s"), "User svc ticket expires in 12 hours 0 minutes.\n")
	expect(t, p4(env, "", "counter", "change"), "7\n")
	expect(t, p4(env, "", "counter", "maxCommitChange"), "6\n")
	expect(t, p4(env, "", "counter", "nosuch"), "0\n")
	expect(t, p4(env, "", "where", "//depot/a/b.c"), "//depot/a/b.c //ws/a/b.c /ws/a/b.c\n")
	expect(t, p4(env, "", "change", "-o", "7"), "# A Perforce Change Specification.\n\nChange:\t7\n\nDate:\t2024/05/06 10:00:00\n\nClient:\tvera-ws\n\n"+
		"User:\tvera\n\nStatus:\tpending\n\nType:\tpublic\n\nDescription:\n\tOn its way.\n\nFiles:\n\t//depot/src/a b.c\n\n")
}

func TestJSONLosesWhatIsNotText(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, in, want string }{
		{"controls are escaped", "a\x01\x1f\t\"\\/<&>\x7f", `"a\u0001\u001f\t\"\\/<&>` + "\x7f" + `"`},
		{"one mark per broken character", "\xe2\x82A\xff\xc3", "\"�A��\""},
		{"a stray continuation stands alone", "\x80\x80", "\"��\""},
		{"characters stay", "ü€😀", `"ü€😀"`},
	} {
		if got := quoteJSON(test.in); got != test.want {
			t.Errorf("%s: got %s, want %s", test.name, got, test.want)
		}
	}
	var b bytes.Buffer
	p := &printer{stdout: bufio.NewWriter(&b), style: jsonl}
	p.record([]field{{"key", "before\x00after"}})
	if err := p.stdout.Flush(); err != nil {
		t.Fatal(err)
	}
	if b.String() != "{\"key\":\"before\"}\n" {
		t.Errorf("a value with a NUL: %q", b.String())
	}
}

const jobDepot = `-- change 1 user=bruno time=2020/04/03:10:00:00 --
Mend it.
-- job job000001 user=vera status=closed --
It leaks.
-- job BUG-7 status=suspended --
It drips.
-- add text //depot/a --
a
`

// As the messages of the server have it, and its plain and tagged output
// (shared/facts/p4.md 1.4).
func TestDescribeTellsOfJobs(t *testing.T) {
	t.Parallel()
	env := smallEnv(t, jobDepot)
	want := "Change 1 by bruno@bruno-ws on 2020/04/03 10:00:00\n\n\tMend it.\n\nJobs fixed ...\n\n" +
		"job000001 on 2020/04/03 by vera *closed*\n\n\tIt leaks.\n\nBUG-7 on 2020/04/03 by bruno *suspended*\n\n\tIt drips.\n\n" +
		"Affected files ...\n\n... //depot/a#1 add\n\n"
	if got := p4(env, "", "describe", "-s", "1"); got.stdout != want {
		t.Errorf("plain:\n%q, want\n%q", got.stdout, want)
	}
	all := records(t, p4(env, "", "-ztag", "-Mj", "describe", "-s", "1"))
	holds(t, all[0], map[string]any{"job0": "job000001", "jobstat0": "closed", "job1": "BUG-7", "jobstat1": "suspended", "job2": nil, "depotFile0": "//depot/a"})
	tagged := p4(env, "", "-ztag", "describe", "-s", "1").stdout
	if job, file := strings.Index(tagged, "... jobstat1 "), strings.Index(tagged, "... depotFile0 "); job < 0 || file < job {
		t.Errorf("the jobs do not stand before the files:\n%s", tagged)
	}
}
